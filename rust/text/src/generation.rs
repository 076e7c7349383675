// SPDX-License-Identifier: Apache-2.0
//! `{% generation %}`: minijinja has no custom tags, so the tag becomes a call block, which is what Hugging Face's own
//! extension makes of it. The called function brackets its body with marks that `collect` takes out of the output.

/// The rewritten source, and whether the tag occurs.
pub struct Rewritten {
    pub source: String,
    pub has_generation: bool,
}

/// An error at a 1-based line of the template.
pub struct SourceError {
    pub line: usize,
    pub message: String,
}

fn line_of(source: &str, offset: usize) -> usize {
    source[..offset].bytes().filter(|byte| *byte == b'\n').count() + 1
}

/// The offset just after `close`, skipping string literals; refuses names that begin with two underscores.
fn end_of_tag(source: &str, from: usize, close: &str) -> Result<usize, SourceError> {
    let bytes = source.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        if source[at..].starts_with(close) {
            return Ok(at + close.len());
        }
        let byte = bytes[at];
        if byte == b'"' || byte == b'\'' {
            at += 1;
            while at < bytes.len() && bytes[at] != byte {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at += 1;
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            let start = at;
            while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
                at += 1;
            }
            if source[start..at].starts_with("__") {
                return Err(SourceError {
                    line: line_of(source, start),
                    message: format!(
                        "`{}`: names that begin with two underscores are not allowed",
                        &source[start..at]
                    ),
                });
            }
        } else {
            at += 1;
            while at < bytes.len() && !source.is_char_boundary(at) {
                at += 1;
            }
        }
    }
    // Unclosed: the parser words this better.
    Ok(source.len())
}

/// (name, its offset, offset after it) of the tag that opens at `open`.
fn tag_name(source: &str, open: usize) -> (&str, usize) {
    let mut start = open + 2;
    let bytes = source.as_bytes();
    if start < bytes.len() && (bytes[start] == b'-' || bytes[start] == b'+') {
        start += 1;
    }
    while start < bytes.len() && bytes[start].is_ascii_whitespace() {
        start += 1;
    }
    let rest = &source[start..];
    let size = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    (&rest[..size], start)
}

fn end_of_raw(source: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(found) = source[at..].find("{%") {
        let open = at + found;
        let (name, start) = tag_name(source, open);
        if name == "endraw" {
            return start + name.len();
        }
        at = open + 2;
    }
    source.len()
}

pub fn rewrite(source: &str) -> Result<Rewritten, SourceError> {
    let mut out = String::with_capacity(source.len() + 64);
    let mut has_generation = false;
    let mut done = 0;
    while let Some(found) = source[done..].find('{') {
        let open = done + found;
        let rest = &source[open..];
        let end = if rest.starts_with("{#") {
            rest.find("#}").map_or(source.len(), |size| open + size + 2)
        } else if rest.starts_with("{{") {
            end_of_tag(source, open + 2, "}}")?
        } else if rest.starts_with("{%") {
            let (name, start) = tag_name(source, open);
            let end = end_of_tag(source, open + 2, "%}")?;
            let replacement = match name {
                "generation" => Some("call _generation()"),
                "endgeneration" => Some("endcall"),
                _ => None,
            };
            if let Some(replacement) = replacement {
                has_generation = true;
                out.push_str(&source[done..start]);
                out.push_str(replacement);
                done = start + name.len();
            }
            if name == "raw" {
                end_of_raw(source, end)
            } else {
                end
            }
        } else {
            open + 1
        };
        out.push_str(&source[done..end]);
        done = end;
    }
    out.push_str(&source[done..]);
    Ok(Rewritten { source: out, has_generation })
}

/// Marks unlike any text of the conversation.
#[derive(Clone)]
pub struct Marks {
    pub begin: String,
    pub end: String,
}

impl Marks {
    /// `context` must not contain the marks: the number is raised until it does not.
    pub fn absent_from(context: &str) -> Marks {
        let mut number = 0u64;
        loop {
            let marks = Marks { begin: format!("\u{f8f1}{number}<"), end: format!("\u{f8f1}{number}>") };
            if !context.contains(&marks.begin) && !context.contains(&marks.end) {
                return marks;
            }
            number += 1;
        }
    }
}

/// Takes the marks out of `text`: the clean text and the byte spans between matching marks. Nested spans merge into the
/// outer one.
pub fn collect(text: &str, marks: &Marks) -> (String, Vec<i64>) {
    let mut clean = String::with_capacity(text.len());
    let mut spans = Vec::new();
    let mut depth = 0;
    let mut rest = text;
    loop {
        let next = [(rest.find(&marks.begin), 1), (rest.find(&marks.end), -1)];
        let Some((offset, step)) = next.iter().filter_map(|(at, step)| at.map(|at| (at, *step))).min() else {
            break;
        };
        clean.push_str(&rest[..offset]);
        rest = &rest[offset + if step > 0 { marks.begin.len() } else { marks.end.len() }..];
        depth += step;
        if (step > 0 && depth == 1) || (step < 0 && depth == 0) {
            spans.push(clean.len() as i64);
        }
    }
    clean.push_str(rest);
    // A template may cut a captured block apart; half a span is no span.
    if spans.len() % 2 == 1 {
        spans.pop();
    }
    (clean, spans)
}
