//! The boundary: what crosses it, and the panics that do not.

use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::sync::Once;

pub const OK: u32 = 0;
pub const REFUSED: u32 = 1;
pub const PANICKED: u32 = 2;

/// Bytes of the caller's.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct View {
    pub data: *const u8,
    pub size: usize,
}

impl View {
    /// # Safety
    /// `data` is readable for `size` bytes, as long as the slice is used.
    pub unsafe fn bytes<'a>(&self) -> &'a [u8] {
        slice(self.data, self.size)
    }
}

/// # Safety
/// `data` is readable for `count` items, as long as the slice is used. It may be null if there are
/// none.
pub unsafe fn slice<'a, T>(data: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(data, count)
    }
}

/// Bytes that this crate owns until `glasshead_text_free`.
#[repr(C)]
pub struct Text {
    pub data: *mut u8,
    pub size: usize,
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        let size = bytes.len();
        Text {
            data: Box::into_raw(bytes.into_boxed_slice()).cast(),
            size,
        }
    }
}

/// Runs `work`; what it refuses, and the panics in it, become a status and a message.
///
/// # Safety
/// `message` is writable.
pub unsafe fn guard(message: *mut Text, work: impl FnOnce() -> Result<(), String>) -> u32 {
    silence();
    let (status, text) = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return OK,
        Ok(Err(text)) => (REFUSED, text),
        Err(panic) => {
            let said = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_string()));
            (PANICKED, said.unwrap_or_default().replace('\n', " "))
        }
    };
    *message = Text::from(text.into_bytes());
    status
}

/// The library never prints: what a panic says is in the message.
fn silence() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| set_hook(Box::new(|_| {})));
}
