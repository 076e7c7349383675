// SPDX-License-Identifier: Apache-2.0
//! SVG text as PNG and PDF. Letters come from the fonts of this crate alone, so that a picture is the same on every machine.

use crate::abi::{bytes, guard, Text};
use crate::pdf_order::ordered;
use resvg::{tiny_skia, usvg};
use std::sync::Arc;
use svg2pdf::usvg::fontdb;

const FAMILY: &str = "Convoy Sans";
static REGULAR: &[u8] = include_bytes!("../fonts/ConvoySans-Regular.ttf");
static BOLD: &[u8] = include_bytes!("../fonts/ConvoySans-Bold.ttf");

/// What the family lacks is its box of an unknown letter. Bytes that are no text are such letters, too.
fn tree_of(svg: &[u8]) -> Result<usvg::Tree, String> {
    let mut options = usvg::Options { font_family: FAMILY.into(), ..usvg::Options::default() };
    let fonts = options.fontdb_mut();
    for font in [REGULAR, BOLD] {
        fonts.load_font_source(fontdb::Source::Binary(Arc::new(font)));
    }
    fonts.set_sans_serif_family(FAMILY);
    let svg = String::from_utf8_lossy(svg).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}");
    usvg::Tree::from_str(&svg, &options).map_err(|error| error.to_string())
}

fn png_of(svg: &[u8]) -> Result<Vec<u8>, String> {
    let tree = tree_of(svg)?;
    let size = tree.size().to_int_size();
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height())
        .ok_or_else(|| format!("{} x {} pixels are too many", size.width(), size.height()))?;
    resvg::render(&tree, tiny_skia::Transform::identity(), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}

fn pdf_of(svg: &[u8]) -> Result<Vec<u8>, String> {
    // A pixel of SVG is 1/96 inch.
    let page = svg2pdf::PageOptions { dpi: 96.0 };
    let pdf = svg2pdf::to_pdf(&tree_of(svg)?, svg2pdf::ConversionOptions::default(), page)
        .map_err(|error| error.to_string())?;
    ordered(&pdf).ok_or_else(|| "svg2pdf writes another form of PDF".into())
}

/// The letters that the family lacks, each once. All that is not ASCII in a figure is text.
fn unknown_letters(svg: &[u8]) -> Result<String, String> {
    let face = ttf_parser::Face::parse(REGULAR, 0).map_err(|error| error.to_string())?;
    let mut found = String::new();
    for letter in String::from_utf8_lossy(svg).chars().filter(|letter| !letter.is_ascii()) {
        if face.glyph_index(letter).is_none() && !found.contains(letter) {
            found.push(letter);
        }
    }
    Ok(found)
}

/// # Safety
/// As `bytes`; `picture` is writable.
unsafe fn draw(
    svg: *const u8,
    size: usize,
    picture: *mut Text,
    error: *mut Text,
    how: fn(&[u8]) -> Result<Vec<u8>, String>,
) -> i32 {
    guard(error, || {
        picture.write(Text::new(how(bytes(svg, size))?));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn convoy_picture_png(
    svg: *const u8,
    size: usize,
    picture: *mut Text,
    error: *mut Text,
) -> i32 {
    draw(svg, size, picture, error, png_of)
}

#[no_mangle]
pub unsafe extern "C" fn convoy_picture_pdf(
    svg: *const u8,
    size: usize,
    picture: *mut Text,
    error: *mut Text,
) -> i32 {
    draw(svg, size, picture, error, pdf_of)
}

#[no_mangle]
pub unsafe extern "C" fn convoy_picture_unknown_letters(
    svg: *const u8,
    size: usize,
    letters: *mut Text,
    error: *mut Text,
) -> i32 {
    draw(svg, size, letters, error, |svg| unknown_letters(svg).map(String::into_bytes))
}
