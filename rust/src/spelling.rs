//! How a vocabulary spells the bytes of a text, read off its decoder.

use std::sync::LazyLock;

use serde_json::Value;
use tokenizers::DecoderWrapper;

/// What happens to the spaces at the beginning of a text when it is put together again.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Front {
    Keep,
    /// One space goes: it was put there.
    DropOne,
    /// All of the first token's go.
    DropAll,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Spelling {
    /// A character for each byte (GPT-2's alphabet).
    Bytes,
    /// A mark for the space, and `<0xNN>` for bytes where `has_bytes`.
    Marked {
        mark: char,
        front: Front,
        has_bytes: bool,
    },
    /// The decoder alone knows, and needs the whole text: `##` and spaces between words.
    Joined { prefix: String },
}

impl Spelling {
    pub fn of(decoder: Option<&DecoderWrapper>) -> Spelling {
        let json = decoder.and_then(|decoder| serde_json::to_value(decoder).ok());
        let chain = match &json {
            None => return joined(""),
            Some(json) if kind(json) == "Sequence" => {
                json["decoders"].as_array().cloned().unwrap_or_default()
            }
            Some(json) => vec![json.clone()],
        };
        if let [only] = chain.as_slice() {
            match kind(only) {
                "ByteLevel" => return Spelling::Bytes,
                "WordPiece" => return joined(only["prefix"].as_str().unwrap_or_default()),
                _ => {}
            }
        }
        marked(&chain).unwrap_or_else(|| joined(""))
    }

    pub fn piece(&self, token: &str, is_first: bool) -> Vec<u8> {
        match self {
            Spelling::Bytes => bytes_of_alphabet(token).unwrap_or_else(|| token.into()),
            Spelling::Marked {
                mark,
                front,
                has_bytes,
            } => {
                if is_first && *front == Front::DropAll {
                    return token.replace(*mark, "").into_bytes();
                }
                let bytes = match byte_of(token) {
                    Some(byte) if *has_bytes => vec![byte],
                    _ => token.replace(*mark, " ").into_bytes(),
                };
                let drops = is_first && *front == Front::DropOne && bytes.first() == Some(&b' ');
                bytes[usize::from(drops)..].to_vec()
            }
            Spelling::Joined { prefix } => {
                let bare = token.strip_prefix(prefix.as_str()).unwrap_or(token);
                bare.as_bytes().to_vec()
            }
        }
    }
}

fn joined(prefix: &str) -> Spelling {
    Spelling::Joined {
        prefix: prefix.to_string(),
    }
}

fn kind(json: &Value) -> &str {
    json["type"].as_str().unwrap_or_default()
}

/// Replace mark -> space, ByteFallback, Fuse, Strip; or Metaspace: in the orders that occur.
fn marked(chain: &[Value]) -> Option<Spelling> {
    let (mut mark, mut front, mut has_bytes) = (None, Front::Keep, false);
    for step in chain {
        match kind(step) {
            "Replace" if step["content"] == " " && mark.is_none() => {
                mark = only_char(step["pattern"]["String"].as_str()?);
                mark?;
            }
            "Metaspace" if mark.is_none() => {
                mark = only_char(step["replacement"].as_str()?);
                if step["prepend_scheme"] != "never" {
                    front = Front::DropAll;
                }
            }
            "ByteFallback" => has_bytes = true,
            "Fuse" => {}
            "Strip" if step["content"] == " " && step["start"] == 1 && step["stop"] == 0 => {
                front = Front::DropOne;
            }
            _ => return None,
        }
    }
    Some(Spelling::Marked {
        mark: mark?,
        front,
        has_bytes,
    })
}

fn only_char(text: &str) -> Option<char> {
    let mut chars = text.chars();
    chars.next().filter(|_| chars.next().is_none())
}

/// `<0xNN>`
pub fn byte_of(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 || !digits.bytes().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// GPT-2's alphabet: bytes that are printable in Latin-1 are themselves, the others follow from
/// U+0100 in order.
static ALPHABET: LazyLock<Alphabet> = LazyLock::new(|| {
    let mut alphabet = Alphabet {
        chars: ['\0'; 256],
        bytes: [None; 0x144],
    };
    let mut others = 0x100u32..;
    for byte in 0..=255u8 {
        let is_shown = matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
        let code = if is_shown {
            Some(byte.into())
        } else {
            others.next()
        };
        let c = code.and_then(char::from_u32).unwrap_or_default();
        alphabet.chars[usize::from(byte)] = c;
        alphabet.bytes[c as usize] = Some(byte);
    }
    alphabet
});

struct Alphabet {
    chars: [char; 256],
    bytes: [Option<u8>; 0x144],
}

pub fn alphabet(byte: u8) -> char {
    ALPHABET.chars[usize::from(byte)]
}

fn byte_of_alphabet(c: char) -> Option<u8> {
    ALPHABET.bytes.get(c as usize).copied().flatten()
}

fn bytes_of_alphabet(token: &str) -> Option<Vec<u8>> {
    token.chars().map(byte_of_alphabet).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_is_one_to_one() {
        for byte in 0..=255u8 {
            assert_eq!(byte_of_alphabet(alphabet(byte)), Some(byte));
        }
        assert_eq!(alphabet(b' '), 'Ġ');
        assert_eq!(alphabet(b'\n'), 'Ċ');
        assert_eq!(byte_of_alphabet('日'), None);
    }

    #[test]
    fn the_space_in_front_goes_once() {
        let spelling = Spelling::Marked {
            mark: '▁',
            front: Front::DropOne,
            has_bytes: true,
        };
        assert_eq!(spelling.piece("▁▁a", true), b" a");
        assert_eq!(spelling.piece("▁▁a", false), b"  a");
        assert_eq!(spelling.piece("<0xE6>", false), [0xE6]);
    }
}
