//! tokenizer.json: the crate reads it; what it lets pass is checked here.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::Deserialize;
use serde_json::Value;
use tokenizers::{ModelWrapper, Tokenizer};

use crate::words::Words;

/// A tokenizer.json is about ten deep. The crate reads it by recursion.
const DEEPEST: usize = 32;
/// The crate keeps a Unigram vocabulary as a tree of bytes that it frees by recursion.
pub const LONGEST_PIECE: usize = 1024;
/// WordPiece takes the square of a word's length.
const LONGEST_WORD: usize = 1000;

#[derive(Deserialize)]
struct Added {
    id: u64,
    content: String,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(default)]
    normalizer: Value,
}

pub fn load(json: &[u8]) -> Result<Words, String> {
    let text = std::str::from_utf8(json).map_err(|fault| {
        format!(
            "file: is not UTF-8 from its byte {} on",
            fault.valid_up_to()
        )
    })?;
    check_form(text)?;
    let head: Head =
        serde_json::from_str(text).map_err(|error| format!("added_tokens: {error}"))?;
    check_charsmaps(&head.normalizer)?;
    let tokenizer: Tokenizer = text
        .parse()
        .map_err(|error: Box<dyn std::error::Error + Send + Sync>| format!("file: {error}"))?;
    let mut problems = check_added(&tokenizer, &head.added_tokens);
    problems.extend(check_model(tokenizer.get_model()));
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    Words::new(tokenizer, None, None)
}

/// A map of characters begins with the size of its tree, for which the crate takes memory at once.
fn check_charsmaps(normalizer: &Value) -> Result<(), String> {
    match normalizer {
        Value::Object(fields) => {
            if let Some(Value::String(map)) = fields.get("precompiled_charsmap") {
                let bytes = map.len() / 4 * 3;
                if first_u32(map).is_none_or(|size| size > bytes) {
                    return Err(format!(
                        "normalizer: its precompiled_charsmap of about {bytes} bytes says it has a larger tree"
                    ));
                }
            }
            fields.values().try_for_each(check_charsmaps)
        }
        Value::Array(items) => items.iter().try_for_each(check_charsmaps),
        _ => Ok(()),
    }
}

/// The u32 that base64 begins with.
fn first_u32(base64: &str) -> Option<usize> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = 0u64;
    for digit in base64.as_bytes().get(..6)? {
        bits = bits << 6 | DIGITS.iter().position(|known| known == digit)? as u64;
    }
    let bytes = (bits >> 4) as u32; // 36 bits were read
    Some(bytes.swap_bytes() as usize)
}

/// The crate gives an added token another id, with a warning to nobody, if its own is taken.
fn check_added(tokenizer: &Tokenizer, added: &[Added]) -> Vec<String> {
    let mut problems = Vec::new();
    for token in added.iter().filter(|token| !token.content.is_empty()) {
        let found = tokenizer.token_to_id(&token.content).map(u64::from);
        if found != Some(token.id) && problems.len() < 10 {
            problems.push(format!(
                "added_tokens: {:?} says its id is {}; by its place in the vocabulary it is {}",
                token.content,
                token.id,
                found.map_or("none".to_string(), |id| id.to_string())
            ));
        }
    }
    problems
}

fn check_model(model: &ModelWrapper) -> Vec<String> {
    match model {
        ModelWrapper::Unigram(unigram) => {
            check_pieces(unigram.iter().map(|(piece, _)| piece.as_str()))
        }
        ModelWrapper::WordPiece(pieces) if pieces.max_input_chars_per_word > LONGEST_WORD => {
            vec![format!(
                "model.max_input_chars_per_word: is {}; at most {LONGEST_WORD} is accepted",
                pieces.max_input_chars_per_word
            )]
        }
        _ => Vec::new(),
    }
}

/// Duplicates, and pieces too long for the crate.
pub fn check_pieces<'a>(pieces: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for (id, piece) in pieces.enumerate() {
        if problems.len() == 10 {
            break;
        }
        if piece.len() > LONGEST_PIECE {
            problems.push(format!(
                "vocabulary: the token {id} has {} bytes; at most {LONGEST_PIECE} are accepted",
                piece.len()
            ));
        }
        if !seen.insert(piece) {
            problems.push(format!(
                "vocabulary: the token {piece:?} occurs twice, again as id {id}"
            ));
        }
    }
    problems
}

/// JSON in which no object has a key twice, and not too deep.
fn check_form(text: &str) -> Result<(), String> {
    let mut problems = Vec::new();
    let mut json = serde_json::Deserializer::from_str(text);
    let seed = Walk {
        depth: 0,
        problems: &mut problems,
    };
    let read = seed.deserialize(&mut json).and_then(|()| json.end());
    if let Err(error) = read {
        problems.push(format!(
            "file: not JSON as a tokenizer.json has it: {error}"
        ));
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.join("\n"))
    }
}

struct Walk<'a> {
    depth: usize,
    problems: &'a mut Vec<String>,
}

impl Walk<'_> {
    fn inner(&mut self) -> Walk<'_> {
        Walk {
            depth: self.depth + 1,
            problems: &mut *self.problems,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth > DEEPEST {
            return Err(D::Error::custom(format!("more than {DEEPEST} levels deep")));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("JSON")
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self.inner())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            entries.next_value_seed(self.inner())?;
            if seen.contains(&key) {
                if self.problems.len() < 10 {
                    self.problems
                        .push(format!("file: the key {key:?} occurs twice"));
                }
            } else {
                seen.insert(key);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"{"version":"1.0","added_tokens":[],"model":{"type":"WordLevel","vocab":{"a":0,"b":1},"unk_token":"a"}}"#;

    #[test]
    fn a_small_file_is_read() {
        assert_eq!(load(SMALL.as_bytes()).map(|words| words.size()), Ok(2));
    }

    #[test]
    fn every_duplicate_is_named() {
        let json = SMALL.replace(r#""b":1"#, r#""b":1,"a":2,"b":3"#);
        let problems = load(json.as_bytes()).err().unwrap_or_default();
        assert!(problems.contains("\"a\" occurs twice") && problems.contains("\"b\" occurs twice"));
    }

    #[test]
    fn ids_are_checked() {
        for (vocab, part) in [
            (r#""a":0,"b":0"#, "share the id 0"),
            (r#""a":0,"b":9999999"#, "out of range"),
        ] {
            let json = SMALL.replace(r#""a":0,"b":1"#, vocab);
            assert!(load(json.as_bytes())
                .err()
                .unwrap_or_default()
                .contains(part));
        }
    }

    #[test]
    fn depth_is_bounded() {
        let json = "[".repeat(100) + &"]".repeat(100);
        assert!(load(json.as_bytes())
            .err()
            .unwrap_or_default()
            .contains("levels deep"));
    }
}
