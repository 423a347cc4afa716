//! Texts that are not UTF-8. The crate takes characters, so the bytes in question take another way:
//! in a byte-level vocabulary they stand alone between the parts that are UTF-8; in one with byte
//! fallback each is passed as a character of a private use area that nothing in the text has and
//! that falls back to four bytes, which are then replaced by the one.

use crate::words::{Span, Words};

/// Where a text first fails to be UTF-8.
pub fn first_fault(text: &[u8]) -> usize {
    std::str::from_utf8(text).map_or_else(|fault| fault.valid_up_to(), str::len)
}

impl Words {
    /// Byte-level: each part apart, each other byte as its own token.
    pub fn encode_apart(&self, text: &[u8], byte_ids: &[u32]) -> Result<Vec<Span>, String> {
        let mut spans = Vec::new();
        let mut at = 0;
        for chunk in text.utf8_chunks() {
            for span in self.encode_text(chunk.valid(), false)? {
                spans.push(span.moved(at));
            }
            at += chunk.valid().len();
            for byte in chunk.invalid() {
                spans.push(Span {
                    id: byte_ids[usize::from(*byte)],
                    begin: at,
                    end: at + 1,
                });
                at += 1;
            }
        }
        Ok(spans)
    }

    /// Byte fallback: through characters that stand for the bytes.
    pub fn encode_through(&self, text: &[u8], byte_ids: &[u32]) -> Result<Vec<Span>, String> {
        let base = free_area(text).ok_or("uses every private use area; it must be UTF-8")?;
        let mut through = String::with_capacity(text.len());
        let mut stands = Vec::new(); // where, in `through`
        for chunk in text.utf8_chunks() {
            through.push_str(chunk.valid());
            for byte in chunk.invalid() {
                stands.push(through.len());
                through.push(stand_in(base, *byte));
            }
        }
        let spans = self.encode_text(&through, false)?;
        // A character that stands for a byte has four bytes, the byte one.
        let back = |at: usize| at - 3 * stands.partition_point(|stand| *stand < at);
        let mut result = Vec::with_capacity(spans.len());
        let mut rest = spans.as_slice();
        let mut found = 0;
        while let Some(first) = rest.first() {
            let (id, length) = match self.stood_for(base, rest, byte_ids) {
                Some(id) => (id, 4),
                None => (first.id, 1),
            };
            found += usize::from(length == 4);
            result.push(Span {
                id,
                begin: back(first.begin),
                end: back(first.end),
            });
            rest = &rest[length..];
        }
        if found != stands.len() {
            return Err("is not UTF-8, and this vocabulary changes such bytes".to_string());
        }
        Ok(result)
    }

    /// The token of the byte for which the character at the front of `spans` stands, if it does.
    fn stood_for(&self, base: u32, spans: &[Span], byte_ids: &[u32]) -> Option<u32> {
        let four = spans.get(..4)?;
        let mut bytes = [0u8; 4];
        for (byte, span) in bytes.iter_mut().zip(four) {
            *byte = byte_ids.iter().position(|id| *id == span.id)? as u8;
        }
        let c = std::str::from_utf8(&bytes).ok()?.chars().next()?;
        let byte = u32::from(c).checked_sub(base).filter(|byte| *byte < 256)?;
        Some(byte_ids[byte as usize])
    }
}

fn stand_in(base: u32, byte: u8) -> char {
    char::from_u32(base + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// 256 characters in a row of plane 16 that the text has none of.
fn free_area(text: &[u8]) -> Option<u32> {
    let mut is_used = [false; 256];
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            if let Some(at) = u32::from(c).checked_sub(0x10_0000) {
                is_used[(at >> 8) as usize] = true;
            }
        }
    }
    // The last area ends in two noncharacters.
    let free = is_used[..255].iter().position(|used| !used)?;
    Some(0x10_0000 + ((free as u32) << 8))
}
