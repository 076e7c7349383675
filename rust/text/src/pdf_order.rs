// SPDX-License-Identifier: Apache-2.0
//! svg2pdf keeps fonts and resources in hash maps, whose order differs from run to run. Here the objects of its PDF get the order in
//! which they are referred to, and references by name the order of their names, so that a figure is the same file again.

const REFERENCE: &[u8] = b" 0 R";
const STREAM: &[u8] = b"\nstream\n";

/// What may refer to others, and the bytes of the stream after it.
struct Object {
    words: Vec<u8>,
    stream: Vec<u8>,
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|one| one == wanted)
}

fn number(bytes: &[u8]) -> Option<usize> {
    std::str::from_utf8(bytes).ok()?.trim().parse().ok()
}

/// Calls `replace` with each number of an object that `words` refers to, in their order, and puts its answers there.
fn with_references(words: &[u8], mut replace: impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(words.len());
    let mut rest = words;
    while let Some(end) = find(rest, REFERENCE) {
        let begin = rest[..end].iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
        out.extend_from_slice(&rest[..begin]);
        if let Some(known) = number(&rest[begin..end]) {
            out.extend_from_slice(replace(known).to_string().as_bytes());
        }
        out.extend_from_slice(REFERENCE);
        rest = &rest[end + REFERENCE.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// Neighbouring lines such as `/fo1 2 0 R`, by name.
fn with_sorted_names(words: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = words.split(|&byte| byte == b'\n').collect();
    let is_reference = |line: &&[u8]| line.trim_ascii_start().starts_with(b"/") && line.ends_with(REFERENCE);
    for run in lines.chunk_by_mut(|one, next| is_reference(one) && is_reference(next)) {
        run.sort_unstable();
    }
    lines.join(&b'\n')
}

/// The objects by their numbers, from 1 on, by the table of their places.
fn objects_of(pdf: &[u8], table: &[u8], end: usize) -> Option<Vec<Object>> {
    let entries = table.split(|&byte| byte == b'\n').filter(|line| line.trim_ascii_end().ends_with(b"n"));
    let places: Vec<usize> = entries.map(|line| number(line.get(..10)?)).collect::<Option<_>>()?;
    let next = |place: usize| places.iter().copied().filter(|&other| other > place).min().unwrap_or(end);
    let object = |&place: &usize| {
        let whole = pdf.get(place..next(place))?;
        let body = &whole[find(whole, b"obj\n")? + 4..];
        let (words, stream) = body.split_at(find(body, STREAM).unwrap_or(body.len()));
        Some(Object { words: with_sorted_names(words), stream: stream.to_vec() })
    };
    places.iter().map(object).collect()
}

/// `pdf`, as pdf-writer has written it. None: it is not.
pub fn ordered(pdf: &[u8]) -> Option<Vec<u8>> {
    let end = pdf.windows(6).rposition(|one| one == b"\nxref\n")? + 1;
    let trailer = end + find(&pdf[end..], b"trailer\n")?;
    let after = trailer + find(&pdf[trailer..], b"startxref\n")?;
    let objects = objects_of(pdf, &pdf[end..trailer], end)?;
    let mut order: Vec<usize> = Vec::new(); // former numbers
    let place_of = |order: &mut Vec<usize>, known: usize| match order.iter().position(|&one| one == known) {
        Some(place) => place + 1,
        None => {
            order.push(known);
            order.len()
        }
    };
    let last = with_references(&pdf[trailer..after], |known| place_of(&mut order, known));
    let mut out = pdf
        [..find(pdf, b" 0 obj\n").and_then(|at| pdf[..at].iter().rposition(|&byte| byte == b'\n'))? + 1]
        .to_vec();
    let mut places = String::new();
    let mut at = 0;
    while at < order.len() {
        let object = objects.get(order[at].checked_sub(1)?)?;
        let words = with_references(&object.words, |known| place_of(&mut order, known));
        at += 1;
        places += &format!("{:010} 00000 n\r\n", out.len());
        out.extend_from_slice(format!("{at} 0 obj\n").as_bytes());
        out.extend_from_slice(&words);
        out.extend_from_slice(&object.stream);
    }
    let table = out.len();
    out.extend_from_slice(format!("xref\n0 {}\n0000000000 65535 f\r\n{places}", at + 1).as_bytes());
    out.extend_from_slice(&last);
    out.extend_from_slice(format!("startxref\n{table}\n%%EOF").as_bytes());
    (at == objects.len()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced_in_order() {
        let mut seen = Vec::new();
        let text = with_references(b"/Kids [12 0 R 3 0 R] /W [0 0 750]", |known| {
            seen.push(known);
            known + 1
        });
        assert_eq!(text, b"/Kids [13 0 R 4 0 R] /W [0 0 750]");
        assert_eq!(seen, [12, 3]);
    }

    #[test]
    fn names_are_sorted_where_they_are_neighbours() {
        let text = with_sorted_names(b"<<\n  /b 1 0 R\n  /a 2 0 R\n>>\n  /A 0");
        assert_eq!(text, b"<<\n  /a 2 0 R\n  /b 1 0 R\n>>\n  /A 0");
    }

    #[test]
    fn what_is_no_pdf_is_told() {
        assert!(ordered(b"").is_none());
        assert!(ordered(b"\nxref\n0 1\ntrailer\nstartxref\n").is_none());
    }
}
