//! How a text is cut into words before the model sees it, by number: `src/text/vocabulary.h` has
//! the same list. The patterns are those that the vocabularies were trained with.

use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{PreTokenizerWrapper, SplitDelimiterBehavior};

const CONTRACTION: &str = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
/// GPT-2's own.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const UPPER: &str = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]";
const LOWER: &str = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]";
const SPACES: &str = r"\s*[\r\n]+|\s+(?!\S)|\s+";

/// Words with a character in front, and digits up to `digits` at a time.
fn words(digits: &str, letter: &str) -> String {
    format!(
        r"{CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?{letter}+|\p{{N}}{digits}| ?[^\s{}\p{{N}}]+[\r\n]*|{SPACES}",
        letter.trim_start_matches('[').trim_end_matches(']')
    )
}

/// Words that end where an upper-case letter follows a lower-case one.
fn cased_words(digits: &str, contraction: &str) -> String {
    format!(
        r"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{contraction}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{contraction}|\p{{N}}{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACES}"
    )
}

fn split(pattern: &str) -> Result<PreTokenizerWrapper, String> {
    let pattern = SplitPattern::Regex(pattern.to_string());
    Split::new(pattern, SplitDelimiterBehavior::Isolated, false)
        .map(PreTokenizerWrapper::from)
        .map_err(|error| error.to_string())
}

/// What comes before a byte-level model. None: there is no such number.
pub fn byte_level(number: u32) -> Result<Option<PreTokenizerWrapper>, String> {
    let spelled = |pattern: bool| PreTokenizerWrapper::from(ByteLevel::new(false, true, pattern));
    let cut = |steps: Vec<PreTokenizerWrapper>| {
        let steps = steps.into_iter().chain([spelled(false)]).collect();
        Ok(Some(Sequence::new(steps).into()))
    };
    let once = |pattern: &str| cut(vec![split(pattern)?]);
    match number {
        1 => Ok(Some(spelled(true))),
        2 => Ok(Some(
            Sequence::new(vec![Digits::new(true).into(), spelled(true)]).into(),
        )),
        3 => once(&words("{1,3}", r"\p{L}")),
        4 => once(&words("", r"\p{L}")),
        5 => once(&words("", r"[\p{L}\p{M}]")),
        6 => once(&cased_words("", "")),
        7 => once(&cased_words("{1,3}", &format!("{CONTRACTION}?"))),
        8 => cut(vec![
            split(r"[\p{P}\$\+<=>\^~\|`]+")?,
            split(GPT2)?,
            split("[0-9][0-9][0-9]")?,
        ]),
        _ => Ok(None),
    }
}

/// One symbol of SMILES.
pub const SMILES: &str =
    r"\[[^\]]+\]|%\([0-9]{3}\)|%[0-9]{2}|Br|Cl|[BNOSPFICbcnosp]|[0-9]|>>|[|().=#\-+\\/:~@?>*$]";

pub fn smiles() -> Result<PreTokenizerWrapper, String> {
    split(SMILES)
}
