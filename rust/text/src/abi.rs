// SPDX-License-Identifier: Apache-2.0
//! What crosses the C ABI: owned arrays, errors as text, and the guard that keeps panics on this side.

use std::panic::{catch_unwind, AssertUnwindSafe};

#[repr(C)]
pub struct Text {
    data: *mut u8,
    size: usize,
}

/// Gives an array away; `take` gets it back. Length and capacity are equal in a boxed slice.
pub fn give<T>(items: Vec<T>) -> (*mut T, usize) {
    let boxed = items.into_boxed_slice();
    let size = boxed.len();
    (Box::into_raw(boxed) as *mut T, size)
}

/// # Safety
/// `data` and `size` come from `give` of the same type, once.
pub unsafe fn take<T>(data: *mut T, size: usize) {
    if !data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(data, size)));
    }
}

impl Text {
    pub fn new(text: impl Into<Vec<u8>>) -> Text {
        let (data, size) = give(text.into());
        Text { data, size }
    }
}

/// # Safety
/// `data` is valid for `size` bytes for the time of the call.
pub unsafe fn bytes<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if size == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(data, size)
    }
}

pub fn panic_text(panic: Box<dyn std::any::Any + Send>) -> String {
    let what =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the library failed inside: {}", what.unwrap_or("unknown cause"))
}

/// Panics are reported as errors; nothing is printed for them.
pub fn silence_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(|_| {})));
}

/// Runs `body`; an error or a panic becomes text in `error`. Returns 0 or 1.
pub fn guard(error: *mut Text, body: impl FnOnce() -> Result<(), String>) -> i32 {
    silence_panics();
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(panic_text(panic)));
    match outcome {
        Ok(()) => 0,
        Err(message) => {
            if !error.is_null() {
                // SAFETY: the caller hands in a writable Text.
                unsafe { error.write(Text::new(message)) };
            }
            1
        }
    }
}

#[no_mangle]
pub unsafe extern "C" fn convoy_text_free(text: Text) {
    take(text.data, text.size);
}
