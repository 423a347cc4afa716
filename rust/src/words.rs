//! A tokenizer, ready to use.

use std::collections::BTreeSet;

use tokenizers::utils::SysRegex;
use tokenizers::{ModelWrapper, PreTokenizerWrapper, Tokenizer};

use crate::bytes::first_fault;
use crate::spelling::{alphabet, Spelling};

/// A token, and the bytes of the text that it covers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Span {
    pub id: u32,
    pub begin: usize,
    pub end: usize,
}

impl Span {
    pub fn added(id: u32) -> Span {
        Span {
            id,
            begin: 0,
            end: 0,
        }
    }

    pub fn moved(self, by: usize) -> Span {
        Span {
            id: self.id,
            begin: self.begin + by,
            end: self.end + by,
        }
    }
}

/// What stands around a text.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Around {
    pub before: Vec<u32>,
    pub after: Vec<u32>,
}

pub struct Words {
    tokenizer: Tokenizer,
    spelling: Spelling,
    around: Around,
    /// Whether the tokenizer itself puts them there.
    adds_around: bool,
    /// The id of each byte's token, where the vocabulary has all of them.
    byte_ids: Option<Vec<u32>>,
    /// Bytes without a token, which a byte-level vocabulary would leave out without a word.
    lost: BTreeSet<u8>,
    /// What a text is made of, where it may hold nothing else.
    symbols: Option<SysRegex>,
    size: usize,
}

impl Words {
    /// `around` is None where the tokenizer's own post-processor adds it.
    pub fn new(
        mut tokenizer: Tokenizer,
        around: Option<Around>,
        symbols: Option<SysRegex>,
    ) -> Result<Words, String> {
        let _ = tokenizer
            .with_truncation(None) // else long texts are cut without a word
            .map_err(|error| error.to_string())?
            .with_padding(None);
        make_certain(&mut tokenizer);
        let size = check_vocabulary(&tokenizer)?;
        let mut words = Words {
            spelling: Spelling::of(tokenizer.get_decoder()),
            adds_around: around.is_none(),
            around: around.unwrap_or_default(),
            byte_ids: None,
            lost: BTreeSet::new(),
            symbols,
            size,
            tokenizer,
        };
        words.find_bytes();
        if words.adds_around {
            words.around = words.own_around();
        }
        Ok(words)
    }

    fn find_bytes(&mut self) {
        let ids: Vec<Option<u32>> = (0..=255u8)
            .map(|byte| match &self.spelling {
                Spelling::Bytes => self.id_of_model(&alphabet(byte).to_string()),
                Spelling::Marked { has_bytes, .. } if *has_bytes => {
                    self.id_of_model(&format!("<0x{byte:02X}>"))
                }
                _ => None,
            })
            .collect();
        if self.spelling == Spelling::Bytes && !self.has_unknown() {
            self.lost = (0..=255u8)
                .filter(|byte| ids[usize::from(*byte)].is_none())
                .collect();
        }
        self.byte_ids = ids.into_iter().collect();
    }

    fn id_of_model(&self, token: &str) -> Option<u32> {
        use tokenizers::Model;
        self.tokenizer.get_model().token_to_id(token)
    }

    fn has_unknown(&self) -> bool {
        match self.tokenizer.get_model() {
            ModelWrapper::BPE(bpe) => bpe.unk_token.is_some(),
            _ => true,
        }
    }

    /// What the post-processor puts around a text, as seen on one letter.
    fn own_around(&self) -> Around {
        let Ok(encoding) = self.tokenizer.encode("a", true) else {
            return Around::default();
        };
        let (ids, mask) = (encoding.get_ids(), encoding.get_special_tokens_mask());
        let before = mask.iter().take_while(|added| **added == 1).count();
        let after = mask[before..]
            .iter()
            .rev()
            .take_while(|added| **added == 1)
            .count();
        Around {
            before: ids[..before].to_vec(),
            after: ids[ids.len() - after..].to_vec(),
        }
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn are_pieces(&self) -> bool {
        !matches!(self.spelling, Spelling::Joined { .. })
    }

    pub fn is_special(&self, id: u32) -> bool {
        let decoder = self
            .tokenizer
            .get_added_vocabulary()
            .get_added_tokens_decoder();
        decoder.get(&id).is_some_and(|token| token.special)
    }

    pub fn id_of(&self, token: &[u8]) -> Option<u32> {
        self.tokenizer.token_to_id(std::str::from_utf8(token).ok()?)
    }

    pub fn token(&self, id: u32) -> Result<String, String> {
        let added = self
            .tokenizer
            .get_added_vocabulary()
            .get_added_tokens_decoder();
        if let Some(token) = added.get(&id) {
            return Ok(token.content.clone());
        }
        self.tokenizer
            .id_to_token(id)
            .ok_or_else(|| format!("no token has the id {id}; there are {} ids", self.size))
    }

    pub fn piece(&self, id: u32, is_first: bool) -> Result<Vec<u8>, String> {
        let added = self
            .tokenizer
            .get_added_vocabulary()
            .get_added_tokens_decoder();
        let token = self.token(id)?;
        if added.contains_key(&id) {
            return Ok(token.into_bytes());
        }
        Ok(self.spelling.piece(&token, is_first))
    }

    pub fn encode(&self, text: &[u8], adds_special: bool) -> Result<Vec<Span>, String> {
        let spans = match std::str::from_utf8(text) {
            Ok(text) if self.adds_around => return self.encode_text(text, adds_special),
            Ok(text) => self.encode_text(text, false)?,
            Err(_) => self.encode_bytes(text)?,
        };
        if !adds_special {
            return Ok(spans);
        }
        let before = self.around.before.iter().map(|id| Span::added(*id));
        let after = self.around.after.iter().map(|id| Span::added(*id));
        Ok(before.chain(spans).chain(after).collect())
    }

    fn encode_bytes(&self, text: &[u8]) -> Result<Vec<Span>, String> {
        let Some(byte_ids) = &self.byte_ids else {
            return Err(format!(
                "is not UTF-8 from its byte {} on, and this vocabulary has no tokens for bytes",
                first_fault(text)
            ));
        };
        match &self.spelling {
            Spelling::Bytes if self.adds_space() => Err(format!(
                "is not UTF-8 from its byte {} on, and this vocabulary puts a space in front",
                first_fault(text)
            )),
            Spelling::Bytes => self.encode_apart(text, byte_ids),
            _ => self.encode_through(text, byte_ids),
        }
    }

    /// Whether the byte-level pre-tokenizer puts a space in front of a text.
    fn adds_space(&self) -> bool {
        fn adds(pre: &PreTokenizerWrapper) -> bool {
            match pre {
                PreTokenizerWrapper::ByteLevel(level) => level.add_prefix_space,
                PreTokenizerWrapper::Sequence(list) => list.as_ref().iter().any(adds),
                _ => false,
            }
        }
        self.tokenizer.get_pre_tokenizer().is_some_and(adds)
    }

    /// UTF-8, without what `around` adds unless the tokenizer does so itself.
    pub fn encode_text(&self, text: &str, adds_special: bool) -> Result<Vec<Span>, String> {
        if let Some(at) = text.bytes().position(|byte| self.lost.contains(&byte)) {
            let byte = text.as_bytes()[at];
            return Err(format!(
                "has the byte 0x{byte:02X} at {at}, for which there is no token"
            ));
        }
        self.check_symbols(text)?;
        let encoding = self
            .tokenizer
            .encode(text, adds_special)
            .map_err(|error| error.to_string())?;
        let spans = encoding.get_ids().iter().zip(encoding.get_offsets());
        Ok(spans
            .map(|(id, (begin, end))| Span {
                id: *id,
                begin: *begin,
                end: *end,
            })
            .collect())
    }

    fn check_symbols(&self, text: &str) -> Result<(), String> {
        let Some(symbols) = &self.symbols else {
            return Ok(());
        };
        let mut at = 0;
        for (begin, end) in symbols.find_iter(text) {
            if begin != at {
                break;
            }
            at = end;
        }
        match text[at..].chars().next() {
            None => Ok(()),
            Some(c) => Err(format!(
                "has {c:?} at its byte {at}, which is no symbol of SMILES"
            )),
        }
    }

    pub fn decode(&self, ids: &[u32], skips_special: bool) -> Result<String, String> {
        let mut unknown: Vec<String> = Vec::new();
        let mut bytes = Vec::new();
        let mut is_first = true;
        for id in ids {
            match self.piece(*id, is_first) {
                Err(problem) => unknown.push(problem),
                Ok(_) if skips_special && self.is_special(*id) => {}
                Ok(piece) => {
                    bytes.extend(piece);
                    is_first = false;
                }
            }
        }
        if !unknown.is_empty() {
            return Err(unknown.join("\n"));
        }
        if self.are_pieces() {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        self.tokenizer
            .decode(ids, skips_special)
            .map_err(|error| error.to_string())
    }
}

/// Dropout and sampling are for training: a text has one encoding here.
fn make_certain(tokenizer: &mut Tokenizer) {
    match tokenizer.get_model() {
        ModelWrapper::BPE(bpe) if bpe.dropout.is_some() => {
            let mut bpe = bpe.clone();
            bpe.dropout = None;
            tokenizer.with_model(bpe);
        }
        ModelWrapper::Unigram(unigram) if unigram.alpha.is_some() => {
            let mut unigram = unigram.clone();
            unigram.alpha = None;
            unigram.nbest_size = None;
            tokenizer.with_model(unigram);
        }
        _ => {}
    }
}

/// The number of ids, if no two tokens share one and they are near enough to each other for tables.
fn check_vocabulary(tokenizer: &Tokenizer) -> Result<usize, String> {
    let mut ids: Vec<(u32, String)> = tokenizer
        .get_vocab(true)
        .into_iter()
        .map(|(token, id)| (id, token))
        .collect();
    if ids.is_empty() {
        return Err("vocabulary: is empty".to_string());
    }
    ids.sort();
    let mut problems: Vec<String> = ids
        .windows(2)
        .filter(|pair| pair[0].0 == pair[1].0)
        .take(10)
        .map(|pair| {
            format!(
                "vocabulary: {:?} and {:?} share the id {}",
                pair[0].1, pair[1].1, pair[0].0
            )
        })
        .collect();
    let largest = ids.last().map_or(0, |(id, _)| *id as usize);
    if largest > 4 * ids.len() + 1024 {
        problems.push(format!(
            "vocabulary: the id {largest} is out of range for {} tokens",
            ids.len()
        ));
    }
    if problems.is_empty() {
        Ok(largest + 1)
    } else {
        Err(problems.join("\n"))
    }
}
