// SPDX-License-Identifier: Apache-2.0
//! Templates write what Jinja2 writes, or are refused: the rows of tests/golden/text/make_expressions.py, and shapes that
//! chat templates use.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::{Brackets, Template, Value, Variables};
use crate::budget;

fn variables(json: &str) -> Variables {
    budget::open(0);
    let Ok(Value::Dict(given)) = serde_json::from_str::<Value>(json) else { panic!("no object: {json}") };
    let named = |(name, value): &(Value, Value)| (name.as_str().unwrap_or_default().into(), value.clone());
    given.pairs().iter().map(named).collect()
}

fn render(source: &str, context: &str) -> Result<String, String> {
    let variables = variables(context);
    budget::open(0);
    Template::parse(source)
        .and_then(|template| template.render(variables, Brackets { begin: "", end: "" }, 0))
        .map_err(|error| error.message)
}

#[test]
fn golden_rows_render_as_in_jinja2_or_are_refused() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/text/expressions.json");
    let golden: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(file).expect("golden rows")).expect("JSON");
    let context = golden["context"].to_string();
    let rows = golden["rows"].as_array().expect("rows");
    let (mut refused, mut errors, mut wrong) = (0, 0, Vec::new());
    for row in rows {
        let source = row[0].as_str().expect("a template");
        match (row[1].as_str(), render(source, &context)) {
            (None, Ok(text)) => wrong.push(format!("{source}\n  has to be refused, writes {text:?}")),
            (None, Err(_)) => errors += 1,
            (Some(text), Ok(written)) if text != written => {
                wrong.push(format!("{source}\n  has to write {text:?}, writes {written:?}"))
            }
            (Some(_), Ok(_)) => {}
            (Some(_), Err(message)) => {
                assert_ne!(message, "", "{source}");
                refused += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    assert!(rows.len() >= 3000 && errors >= 50 && refused <= rows.len() / 50, "{errors} {refused}");
}

/// A reader that is fast but not exact is one unit in the last place beside them.
#[test]
fn numbers_of_rows_are_the_doubles_that_python_reads() {
    for number in [
        "914.4251823299733",
        "961.9132383299313",
        "3.588754913e-28",
        "-0.1",
        "1e+22",
        "2.2250738585072014e-308",
        "1.7976931348623157e+308",
        "123456789.12345679",
        "5e-324",
    ] {
        let written = render("{{ x }}|{{ x|tojson }}", &format!("{{\"x\":{number}}}"));
        assert_eq!(written, Ok(format!("{number}|{number}")));
    }
}

/// What each of these wrote was different from Jinja2, or was refused.
#[test]
fn shapes_of_chat_templates() {
    let context = r#"{"messages": [{"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "text", "text": "it's"}]}]}"#;
    for (source, text) in [
        // Namespaces are assigned to from within functions, whether these read them or not.
        (
            "{% set ns = namespace(x=0) %}{% for m in messages %}{% generation %}{{ m.role }}\
{% set ns.x = 1 %}{% endgeneration %}{% endfor %}{{ ns.x }}",
            "userassistant1",
        ),
        (
            "{% set ns = namespace(x=0) %}{% macro f() %}{% set ns.x = 2 %}{% endmacro %}\
{{ f() }}{{ ns.x }}",
            "2",
        ),
        (
            "{% set ns = namespace(x=0) %}{% macro f() %}{{ caller() }}{% endmacro %}\
{% call f() %}{% set ns.x = 3 %}{% endcall %}{{ ns.x }}",
            "3",
        ),
        // Whatever turns a list into text writes Python's repr.
        ("{{ messages[1].content | trim }}", "[{'type': 'text', 'text': \"it's\"}]"),
        ("{{ messages[1].content | upper }}", "[{'TYPE': 'TEXT', 'TEXT': \"IT'S\"}]"),
        ("{{ '' ~ messages[1].content }}", "[{'type': 'text', 'text': \"it's\"}]"),
        ("{{ messages[1].content | replace('text', 't') }}", "[{'type': 't', 't': \"it's\"}]"),
        ("{{ (1, 'a') }}{{ (1,) }}", "(1, 'a')(1,)"),
        ("{{ true is number }}{{ 2.5 | round }}{{ 0.5 | round }}", "True2.00.0"),
        ("{{ ['B', 'a'] | min }}{{ ['B', 'a'] | max }}", "aB"),
        ("{{ '\"<\\'' | e }}", "&#34;&lt;&#39;"),
        ("{{ 1e16 ~ '' }}{{ true ~ none }}", "1e+16TrueNone"),
        ("{{ '%s is %d' % ('x', 3) }}{{ 'aaa' | replace('a', 'b', 2) }}", "x is 3bba"),
        ("{{ 'x' | int }}{{ 5 | int }}{{ '0x1f' | int(0, 16) }}", "0531"),
        ("{{ messages | join(',', attribute='role') }}", "user,assistant"),
        ("{{ [{'n': 1}, {'n': 2}] | sum(attribute='n') }}{{ -[{'n': 1}][0].n }}", "3-1"),
        ("{{ 7 // -2 }}{{ -7 % 3 }}{{ 1 / 2 }}{{ 2 ** 3 ** 2 }}", "-420.564"),
    ] {
        assert_eq!(render(source, context), Ok(text.into()), "{source}");
    }
}

#[test]
fn what_jinja2_raises_is_refused() {
    for source in [
        "{{ 1 / 0 }}",
        "{{ missing.x }}",
        "{{ missing + 1 }}",
        "{{ 1 < 'a' }}",
        "{{ [1].append(2) }}",
        "{{ 'a' + 1 }}",
        "{{ {}.update({}) }}",
        "{{ ''.join([1]) }}",
        "{{ 1 | nope }}",
        "{{ range(100001) }}",
        "{{ [3, 'a'] | sort }}",
        "{% set messages.x = 1 %}",
    ] {
        assert!(render(source, "{}").is_err(), "{source}");
    }
}

/// The modules that a file names in its `use` lines, by their paths.
fn uses(text: &str, files: &HashSet<String>) -> Vec<String> {
    text.match_indices("crate::jinja::")
        .filter_map(|(at, prefix)| {
            let path =
                text[at + prefix.len()..].split(|c: char| c != ':' && c != '_' && !c.is_alphanumeric());
            let mut path = path.into_iter().next()?.trim_end_matches(':').replace("::", "/");
            while !files.contains(&path) {
                path.truncate(path.rfind('/')?);
            }
            Some(path)
        })
        .collect()
}

#[test]
fn no_module_uses_itself_through_others() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/jinja");
    let mut texts = HashMap::new();
    let mut folders: Vec<PathBuf> = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.parent() != Some(&root) || path.ends_with("error.rs") {
                let name = path.strip_prefix(&root).expect("below").with_extension("");
                let name = name.to_str().expect("UTF-8").trim_end_matches("/mod").to_string();
                texts.insert(name, std::fs::read_to_string(&path).expect("a source"));
            }
        }
    }
    let files: HashSet<String> = texts.keys().cloned().collect();
    let mut left: HashMap<String, Vec<String>> =
        texts.iter().map(|(name, text)| (name.clone(), uses(text, &files))).collect();
    assert!(left.len() > 20 && left["values/value"] == ["error"], "{left:?}");
    // A module is done when all that it uses is.
    while let Some(done) = left.iter().find(|(_, used)| used.is_empty()).map(|(name, _)| name.clone()) {
        left.remove(&done);
        left.values_mut().for_each(|used| used.retain(|name| *name != done));
    }
    assert!(left.is_empty(), "modules in a circle: {left:?}");
}
