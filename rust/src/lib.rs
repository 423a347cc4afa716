//! Hugging Face's `tokenizers` behind a C ABI. `src/text/abi.h` declares the same functions and
//! structs for C++; the two change together.
//!
//! Every call returns a status. Anything but `OK` comes with a message in UTF-8, a line for each
//! problem, which the caller frees. Inputs are a pointer and a length (NUL is a byte like another)
//! and are read during the call only. A panic is caught here and becomes a status. No call starts a
//! thread, and a `Words` may be used by several threads at once: it never changes.

mod bytes;
mod guard;
mod json;
mod parts;
mod pre;
mod spelling;
mod words;

use guard::{guard, Text, View};
use words::Words;

/// A vocabulary by its parts; see `parts::Parts`.
pub use parts::RawParts;

/// Ids with the bytes that each covers: `begin[i]..end[i]` of the text, empty for tokens that were
/// added around it.
#[repr(C)]
pub struct RawEncoding {
    pub ids: *mut u32,
    pub begin: *mut u64,
    pub end: *mut u64,
    pub count: usize,
}

fn leak<T>(items: Vec<T>) -> *mut T {
    Box::into_raw(items.into_boxed_slice()).cast()
}

/// # Safety
/// `items` came from `leak` of `count` items.
unsafe fn unleak<T>(items: *mut T, count: usize) {
    if !items.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
            items, count,
        )));
    }
}

/// A tokenizer from the bytes of a tokenizer.json.
///
/// # Safety
/// `json` is readable, `out` and `message` are writable.
#[no_mangle]
pub unsafe extern "C" fn glasshead_words_from_json(
    json: View,
    out: *mut *mut Words,
    message: *mut Text,
) -> u32 {
    guard(message, || {
        *out = Box::into_raw(Box::new(json::load(json.bytes())?));
        Ok(())
    })
}

/// A tokenizer from a vocabulary.
///
/// # Safety
/// Every pointer in `parts` is readable for its count, `out` and `message` are writable.
#[no_mangle]
pub unsafe extern "C" fn glasshead_words_from_parts(
    parts: *const RawParts,
    out: *mut *mut Words,
    message: *mut Text,
) -> u32 {
    guard(message, || {
        *out = Box::into_raw(Box::new(parts::build(&parts::Parts::read(&*parts)?)?));
        Ok(())
    })
}

/// # Safety
/// `words` came from one of the functions above, and is not used afterwards.
#[no_mangle]
pub unsafe extern "C" fn glasshead_words_free(words: *mut Words) {
    if !words.is_null() {
        drop(Box::from_raw(words));
    }
}

/// Ids are in `[0, size)`.
///
/// # Safety
/// `words` is one that was made and not freed: here and below.
#[no_mangle]
pub unsafe extern "C" fn glasshead_words_size(words: *const Words) -> usize {
    (*words).size()
}

/// 1 if the pieces of a text's ids, one after the other, are the text.
///
/// # Safety
/// As above.
#[no_mangle]
pub unsafe extern "C" fn glasshead_words_are_pieces(words: *const Words) -> u32 {
    u32::from((*words).are_pieces())
}

/// 1 if the id is that of a special token, which `decode` can leave out.
///
/// # Safety
/// As above.
#[no_mangle]
pub unsafe extern "C" fn glasshead_words_is_special(words: *const Words, id: u32) -> u32 {
    u32::from((*words).is_special(id))
}

/// The id of a token as the vocabulary spells it; -1 if it has none.
///
/// # Safety
/// As above, and `token` is readable.
#[no_mangle]
pub unsafe extern "C" fn glasshead_words_id_of(words: *const Words, token: View) -> i64 {
    (*words).id_of(token.bytes()).map_or(-1, i64::from)
}

/// A token as the vocabulary spells it.
///
/// # Safety
/// As above; `out` and `message` are writable.
#[no_mangle]
pub unsafe extern "C" fn glasshead_words_token(
    words: *const Words,
    id: u32,
    out: *mut Text,
    message: *mut Text,
) -> u32 {
    guard(message, || {
        *out = Text::from((*words).token(id)?.as_bytes().to_vec());
        Ok(())
    })
}

/// The bytes that a token stands for in a text. `is_first` (0 or 1): at its beginning, where some
/// vocabularies have a space that is no part of the text.
///
/// # Safety
/// As above; `out` and `message` are writable.
#[no_mangle]
pub unsafe extern "C" fn glasshead_words_piece(
    words: *const Words,
    id: u32,
    is_first: u32,
    out: *mut Text,
    message: *mut Text,
) -> u32 {
    guard(message, || {
        *out = Text::from((*words).piece(id, is_first != 0)?);
        Ok(())
    })
}

/// A text to ids. `adds_special` (0 or 1): with what the model puts around a text.
///
/// # Safety
/// As above; `text` is readable, `out` and `message` are writable.
#[no_mangle]
pub unsafe extern "C" fn glasshead_words_encode(
    words: *const Words,
    text: View,
    adds_special: u32,
    out: *mut RawEncoding,
    message: *mut Text,
) -> u32 {
    guard(message, || {
        let spans = (*words).encode(text.bytes(), adds_special != 0)?;
        *out = RawEncoding {
            count: spans.len(),
            ids: leak(spans.iter().map(|span| span.id).collect()),
            begin: leak(spans.iter().map(|span| span.begin as u64).collect()),
            end: leak(spans.iter().map(|span| span.end as u64).collect()),
        };
        Ok(())
    })
}

/// Ids to a text. `skips_special` (0 or 1): without the special tokens.
///
/// # Safety
/// As above; `ids` is readable for `count`, `out` and `message` are writable.
#[no_mangle]
pub unsafe extern "C" fn glasshead_words_decode(
    words: *const Words,
    ids: *const u32,
    count: usize,
    skips_special: u32,
    out: *mut Text,
    message: *mut Text,
) -> u32 {
    guard(message, || {
        let ids = guard::slice(ids, count);
        *out = Text::from((*words).decode(ids, skips_special != 0)?.into_bytes());
        Ok(())
    })
}

/// # Safety
/// `encoding` was filled by `glasshead_words_encode` and is not used afterwards.
#[no_mangle]
pub unsafe extern "C" fn glasshead_encoding_free(encoding: RawEncoding) {
    unleak(encoding.ids, encoding.count);
    unleak(encoding.begin, encoding.count);
    unleak(encoding.end, encoding.count);
}

/// # Safety
/// `text` was filled by a call of this crate and is not used afterwards.
#[no_mangle]
pub unsafe extern "C" fn glasshead_text_free(text: Text) {
    unleak(text.data, text.size);
}
