// SPDX-License-Identifier: Apache-2.0
//! Letters as Python's str has them, for scores: their classes, lower case and case folding.

use crate::abi::{bytes, Text};
use crate::jinja::casefold;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

#[repr(C)]
pub enum LetterClass {
    Other,
    LetterOrNumber,
    Mark,
}

#[no_mangle]
pub extern "C" fn convoy_letter_class(code: u32) -> LetterClass {
    match char::from_u32(code).map(|letter| letter.general_category_group()) {
        Some(GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number) => LetterClass::LetterOrNumber,
        Some(GeneralCategoryGroup::Mark) => LetterClass::Mark,
        _ => LetterClass::Other,
    }
}

/// Bytes that are no text stay as they are.
fn changed(text: &[u8], change: impl Fn(&str) -> String) -> Text {
    let mut out = Vec::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        out.extend_from_slice(change(chunk.valid()).as_bytes());
        out.extend_from_slice(chunk.invalid());
    }
    Text::new(out)
}

#[no_mangle]
pub unsafe extern "C" fn convoy_text_lowered(text: *const u8, size: usize) -> Text {
    changed(bytes(text, size), str::to_lowercase)
}

#[no_mangle]
pub unsafe extern "C" fn convoy_text_case_folded(text: *const u8, size: usize) -> Text {
    changed(bytes(text, size), casefold)
}
