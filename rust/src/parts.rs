//! A tokenizer from a vocabulary: what the formats without a tokenizer.json hold. `src/text/abi.h`
//! has the same struct and numbers.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as Decoders;
use tokenizers::decoders::strip::Strip as StripFront;
use tokenizers::decoders::wordpiece::WordPiece as Joined;
use tokenizers::models::bpe::BPE;
use tokenizers::models::unigram::Unigram;
use tokenizers::models::wordlevel::WordLevel;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::normalizers::{
    BertNormalizer, Precompiled, Prepend, Replace, Sequence as Normalizers, Strip, NFC,
};
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::utils::SysRegex;
use tokenizers::{AddedToken, DecoderWrapper, ModelWrapper, NormalizerWrapper, Tokenizer};

use crate::guard::{slice, View};
use crate::json::check_pieces;
use crate::pre;
use crate::words::{Around, Words};

/// `text` cut at `ends`.
#[repr(C)]
pub struct RawList {
    text: View,
    ends: *const u64,
    count: usize,
}

#[repr(C)]
pub struct RawParts {
    algorithm: u32,
    pre: u32,
    flags: u32,
    unknown: i64,       // an id, or -1
    tokens: RawList,    // by id
    kinds: *const u8,   // of each token
    scores: *const f32, // of each token; null: none
    merges: RawList,    // "left right"
    charsmap: View,     // SentencePiece's map of characters
    before: *const u32, // ids put in front of a text
    before_count: usize,
    after: *const u32, // and behind it
    after_count: usize,
}

const BYTE_BPE: u32 = 0;
const SENTENCEPIECE_BPE: u32 = 1;
const WORDPIECE: u32 = 2;
const UNIGRAM: u32 = 3;
const SYMBOLS: u32 = 4;

const IGNORES_MERGES: u32 = 1;
const ADDS_SPACE: u32 = 2;
const LOWERS_CASE: u32 = 4;
const STRIPS_ACCENTS: u32 = 8;
const SPLITS_CJK: u32 = 16;
const COMPOSES: u32 = 32; // NFC
const JOINS_SPACES: u32 = 64;
const TRIMS_OFFSETS: u32 = 128;

// As GGUF numbers them, and one of ours: a control token that takes the spaces before it.
const NORMAL: u8 = 1;
const CONTROL: u8 = 3;
const USER_DEFINED: u8 = 4;
const CONTROL_WITH_SPACES: u8 = 7;

pub struct Parts<'a> {
    algorithm: u32,
    pre: u32,
    flags: u32,
    unknown: Option<u32>,
    tokens: Vec<&'a str>,
    kinds: &'a [u8],
    scores: Option<&'a [f32]>,
    merges: Vec<&'a str>,
    charsmap: &'a [u8],
    around: Around,
}

impl<'a> Parts<'a> {
    /// # Safety
    /// Every pointer is readable for its count, as long as the parts are used.
    pub unsafe fn read(raw: &RawParts) -> Result<Parts<'a>, String> {
        let mut problems = Vec::new();
        let tokens = strings(&raw.tokens, "tokens", &mut problems);
        let merges = strings(&raw.merges, "merges", &mut problems);
        if !problems.is_empty() {
            return Err(problems.join("\n"));
        }
        let count = tokens.len();
        Ok(Parts {
            algorithm: raw.algorithm,
            pre: raw.pre,
            flags: raw.flags,
            unknown: u32::try_from(raw.unknown).ok(),
            tokens,
            kinds: slice(raw.kinds, count),
            scores: (!raw.scores.is_null()).then(|| slice(raw.scores, count)),
            merges,
            charsmap: raw.charsmap.bytes(),
            around: Around {
                before: slice(raw.before, raw.before_count).to_vec(),
                after: slice(raw.after, raw.after_count).to_vec(),
            },
        })
    }

    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    fn unknown(&self) -> Option<&'a str> {
        self.tokens.get(self.unknown? as usize).copied()
    }

    fn required_unknown(&self) -> Result<String, String> {
        let unknown = self.unknown().map(str::to_string);
        unknown.ok_or_else(|| "unknown token: the vocabulary has none, and needs one".to_string())
    }

    fn vocabulary(&self) -> impl Iterator<Item = (String, u32)> + '_ {
        (0..)
            .zip(&self.tokens)
            .map(|(id, token)| (token.to_string(), id))
    }
}

unsafe fn strings<'a>(list: &RawList, name: &str, problems: &mut Vec<String>) -> Vec<&'a str> {
    let text: &'a [u8] = list.text.bytes();
    let mut begin = 0;
    let mut found = Vec::with_capacity(list.count);
    for (at, end) in slice(list.ends, list.count).iter().enumerate() {
        let end = *end as usize;
        let bytes: &'a [u8] = text.get(begin..end).unwrap_or_default();
        match std::str::from_utf8(bytes) {
            Ok(string) => found.push(string),
            Err(_) if problems.len() < 10 => {
                problems.push(format!("{name}: number {at} is not UTF-8"))
            }
            Err(_) => {}
        }
        begin = end;
    }
    found
}

pub fn build(parts: &Parts) -> Result<Words, String> {
    let problems = check_pieces(parts.tokens.iter().copied());
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    let mut tokenizer = match parts.algorithm {
        BYTE_BPE => byte_bpe(parts)?,
        SENTENCEPIECE_BPE => sentencepiece_bpe(parts)?,
        WORDPIECE => wordpiece(parts)?,
        UNIGRAM => unigram(parts)?,
        SYMBOLS => symbols(parts)?,
        other => return Err(format!("algorithm: {other} is unknown")),
    };
    add_tokens(&mut tokenizer, parts)?;
    let symbols = match parts.algorithm {
        SYMBOLS => Some(SysRegex::new(pre::SMILES).map_err(|error| error.to_string())?),
        _ => None,
    };
    Words::new(tokenizer, Some(parts.around.clone()), symbols)
}

fn add_tokens(tokenizer: &mut Tokenizer, parts: &Parts) -> Result<(), String> {
    let added = parts
        .tokens
        .iter()
        .zip(parts.kinds)
        .filter_map(|(token, kind)| {
            let is_special = matches!(*kind, CONTROL | CONTROL_WITH_SPACES);
            (is_special || *kind == USER_DEFINED).then(|| {
                AddedToken::from(*token, is_special)
                    .normalized(false)
                    .lstrip(*kind == CONTROL_WITH_SPACES)
            })
        });
    let added: Vec<AddedToken> = added.collect();
    tokenizer
        .add_tokens(added)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

/// The crate fails at the first merge of what is no token, or by a panic.
fn check_merges(parts: &Parts, merges: &[(String, String)]) -> Result<(), String> {
    let known: HashSet<&str> = parts.tokens.iter().copied().collect();
    let mut problems = Vec::new();
    for (at, (left, right)) in merges.iter().enumerate() {
        let whole = format!("{left}{right}");
        for token in [left, right, &whole] {
            if !known.contains(token.as_str()) && problems.len() < 10 {
                problems.push(format!(
                    "merges: number {at} has {token:?}, which is no token"
                ));
            }
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.join("\n"))
    }
}

fn bpe(
    parts: &Parts,
    merges: Vec<(String, String)>,
    falls_back: bool,
) -> Result<ModelWrapper, String> {
    check_merges(parts, &merges)?;
    let mut builder = BPE::builder()
        .vocab_and_merges(parts.vocabulary().collect::<Vocabulary>(), merges)
        .ignore_merges(parts.has(IGNORES_MERGES))
        .byte_fallback(falls_back)
        .fuse_unk(falls_back);
    if let Some(unknown) = parts.unknown() {
        builder = builder.unk_token(unknown.to_string());
    }
    builder
        .build()
        .map(ModelWrapper::from)
        .map_err(|error| format!("merges: {error}"))
}

type Vocabulary = tokenizers::models::bpe::Vocab;

fn byte_bpe(parts: &Parts) -> Result<Tokenizer, String> {
    let mut tokenizer = Tokenizer::new(bpe(parts, given_merges(parts)?, false)?);
    let before = pre::byte_level(parts.pre)?;
    if before.is_none() {
        return Err(format!("pre-tokenizer: {} is unknown", parts.pre));
    }
    if parts.has(COMPOSES) {
        tokenizer
            .with_normalizer(Some(NFC))
            .map_err(|error| error.to_string())?;
    }
    tokenizer
        .with_pre_tokenizer(before)
        .with_post_processor(Some(ByteLevel::new(false, parts.has(TRIMS_OFFSETS), true)))
        .with_decoder(Some(ByteLevel::default()));
    Ok(tokenizer)
}

/// "left right": cut at the first space after the first character.
fn given_merges(parts: &Parts) -> Result<Vec<(String, String)>, String> {
    let mut problems = Vec::new();
    let mut merges = Vec::with_capacity(parts.merges.len());
    for (at, merge) in parts.merges.iter().enumerate() {
        let first = merge.chars().next().map_or(0, char::len_utf8);
        match merge[first..].find(' ') {
            Some(space) => merges.push((
                merge[..first + space].to_string(),
                merge[first + space + 1..].to_string(),
            )),
            None if problems.len() < 10 => {
                problems.push(format!("merges: number {at}, {merge:?}, is not two tokens"));
            }
            None => {}
        }
    }
    if problems.is_empty() {
        Ok(merges)
    } else {
        Err(problems.join("\n"))
    }
}

/// SentencePiece merges the two neighbours whose union has the best score: every way to cut a piece
/// in two pieces, best score first. Where scores are equal the longer left part is first.
fn made_merges(parts: &Parts) -> Result<Vec<(String, String)>, String> {
    let scores = parts.scores.ok_or("scores: are missing")?;
    if let Some(at) = scores.iter().position(|score| !score.is_finite()) {
        return Err(format!("scores: number {at} is not finite"));
    }
    let is_normal = |id: usize| parts.kinds[id] == NORMAL;
    let ids: HashMap<&str, usize> = parts
        .tokens
        .iter()
        .enumerate()
        .map(|(id, token)| (*token, id))
        .collect();
    let known = |piece: &str| ids.get(piece).is_some_and(|id| is_normal(*id));
    let mut merges: Vec<(f32, usize, &str, &str)> = Vec::new();
    for (id, piece) in parts
        .tokens
        .iter()
        .enumerate()
        .filter(|(id, _)| is_normal(*id))
    {
        for (cut, _) in piece.char_indices().skip(1) {
            let (left, right) = piece.split_at(cut);
            if known(left) && known(right) {
                merges.push((scores[id], left.chars().count(), left, right));
            }
        }
    }
    merges.sort_by(|a, b| {
        b.0.partial_cmp(&a.0)
            .unwrap_or(Ordering::Equal)
            .then(b.1.cmp(&a.1))
    });
    Ok(merges
        .into_iter()
        .map(|(_, _, left, right)| (left.to_string(), right.to_string()))
        .collect())
}

const MARK: &str = "▁";

fn sentencepiece_bpe(parts: &Parts) -> Result<Tokenizer, String> {
    let merges = if parts.merges.is_empty() {
        made_merges(parts)?
    } else {
        given_merges(parts)?
    };
    let mut tokenizer = Tokenizer::new(bpe(parts, merges, true)?);
    let mut steps: Vec<NormalizerWrapper> = Vec::new();
    if parts.has(ADDS_SPACE) {
        steps.push(Prepend::new(MARK.to_string()).into());
    }
    steps.push(replace(" ", MARK)?.into());
    tokenizer
        .with_normalizer(Some(Normalizers::new(steps)))
        .map_err(|error| error.to_string())?;
    let mut chain: Vec<DecoderWrapper> = vec![
        replace(MARK, " ")?.into(),
        ByteFallback::new().into(),
        Fuse::new().into(),
    ];
    if parts.has(ADDS_SPACE) {
        chain.push(StripFront::new(' ', 1, 0).into());
    }
    tokenizer.with_decoder(Some(Decoders::new(chain)));
    Ok(tokenizer)
}

fn replace(from: &str, to: &str) -> Result<Replace, String> {
    Replace::new(from, to).map_err(|error| error.to_string())
}

fn wordpiece(parts: &Parts) -> Result<Tokenizer, String> {
    let model = WordPiece::builder()
        .vocab(parts.vocabulary().collect::<Vocabulary>())
        .unk_token(parts.required_unknown()?)
        .build()
        .map_err(|error| error.to_string())?;
    let mut tokenizer = Tokenizer::new(model);
    let normalizer = BertNormalizer::new(
        true,
        parts.has(SPLITS_CJK),
        Some(parts.has(STRIPS_ACCENTS)),
        parts.has(LOWERS_CASE),
    );
    tokenizer
        .with_normalizer(Some(normalizer))
        .map_err(|error| error.to_string())?;
    tokenizer
        .with_pre_tokenizer(Some(BertPreTokenizer))
        .with_decoder(Some(Joined::default()));
    Ok(tokenizer)
}

fn unigram(parts: &Parts) -> Result<Tokenizer, String> {
    let scores = parts.scores.ok_or("scores: are missing")?;
    if let Some(at) = scores.iter().position(|score| !score.is_finite()) {
        return Err(format!("scores: number {at} is not finite"));
    }
    parts.required_unknown()?;
    let pieces = parts
        .tokens
        .iter()
        .zip(scores)
        .map(|(token, score)| (token.to_string(), f64::from(*score)));
    let unknown = parts.unknown.map(|id| id as usize);
    let model =
        Unigram::from(pieces.collect(), unknown, false).map_err(|error| error.to_string())?;
    let mut tokenizer = Tokenizer::new(model);
    let mut steps: Vec<NormalizerWrapper> = Vec::new();
    if !parts.charsmap.is_empty() {
        steps.push(charsmap(parts.charsmap)?.into());
    }
    if parts.has(JOINS_SPACES) {
        steps.push(Strip::new(false, true).into());
        let spaces = ReplacePattern::Regex(" {2,}".to_string());
        steps.push(
            Replace::new(spaces, MARK)
                .map_err(|error| error.to_string())?
                .into(),
        );
    }
    tokenizer
        .with_normalizer(Some(Normalizers::new(steps)))
        .map_err(|error| error.to_string())?;
    let scheme = if parts.has(ADDS_SPACE) {
        PrependScheme::Always
    } else {
        PrependScheme::Never
    };
    let marks = Metaspace::new('▁', scheme, true);
    tokenizer
        .with_pre_tokenizer(Some(marks.clone()))
        .with_decoder(Some(marks));
    Ok(tokenizer)
}

/// A u32 with the size of a tree, the tree, and the texts it leads to, each ended by NUL.
fn charsmap(bytes: &[u8]) -> Result<Precompiled, String> {
    let size = bytes
        .first_chunk::<4>()
        .map(|size| u32::from_le_bytes(*size) as usize);
    let texts = size.and_then(|size| bytes.get(4usize.checked_add(size)?..));
    let is_whole = size.is_some_and(|size| size % 4 == 0 && size > 0);
    if !is_whole || texts.is_none_or(|texts| std::str::from_utf8(texts).is_err()) {
        return Err("precompiled_charsmap: its tree and its texts do not fill it".to_string());
    }
    Precompiled::from(bytes).map_err(|error| format!("precompiled_charsmap: {error}"))
}

fn symbols(parts: &Parts) -> Result<Tokenizer, String> {
    let model = WordLevel::builder()
        .vocab(parts.vocabulary().collect::<Vocabulary>())
        .unk_token(parts.required_unknown()?)
        .build()
        .map_err(|error| error.to_string())?;
    let mut tokenizer = Tokenizer::new(model);
    tokenizer
        .with_pre_tokenizer(Some(pre::smiles()?))
        .with_decoder(Some(Fuse::new()));
    Ok(tokenizer)
}
