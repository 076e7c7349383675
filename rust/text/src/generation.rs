// SPDX-License-Identifier: Apache-2.0
//! Where `{% generation %}` blocks lie in the output. A block may be written into a variable or through a filter first, so
//! marks go with its text, which `collect` takes out again.

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
