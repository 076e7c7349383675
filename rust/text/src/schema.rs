// SPDX-License-Identifier: Apache-2.0
//! JSON Schemas as llguidance reads them (decision 0037): refuses by name what it would pass over, and
//! what takes too long to compile.

use std::collections::{HashMap, HashSet};

use serde_json::{json, Map, Value};

/// JSON's white space between two signs: a model that indents has room, and a text cannot go on
/// with it for ever.
const WHITE_SPACE: &str = r"[\x20\x0A\x0D\x09]{1,40}";

/// Names in a schema under which each key is a name of the author's, not a keyword.
const MAPS: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// Keywords whose values are data.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// Patterns that one text may have to match together: the work to compile them doubles with each.
const MOST_PATTERNS: usize = 8;

/// The most bytes of a schema: beyond, compiling takes seconds.
pub const MOST_BYTES: usize = 2 << 20;

/// Properties of one object that may be left out: each makes four places in the grammar, and a place
/// in a text may have 2,000.
const MOST_OPTIONAL: usize = 480;

/// Properties of one object: the time to compile them grows with their square.
const MOST_PROPERTIES: usize = 3000;

/// Patterns of property names that one object may have, with the patterns of its `allOf` and `$ref`: each is compared with each other, and again for each way through `anyOf`. 1,000 took 7 minutes.
const MOST_PATTERN_PROPERTIES: usize = 32;

/// Parts of a list of schemas, and alternatives of `anyOf` and `oneOf` that are no plain values: each
/// alternative is a place of its own in the grammar.
const MOST_PARTS: usize = 10_000;
const MOST_ALTERNATIVES: usize = 2000;

/// Values of one `enum`.
const MOST_VALUES: usize = 50_000;

/// The largest `multipleOf`, in units of its last digit that is not 0, without its factors 2 and 5:
/// the reader of numbers has a state for each remainder.
const MOST_REMAINDERS: f64 = 10_000.0;

/// The most decimals of a `multipleOf`: llguidance counts them in 32 bits.
const MOST_DECIMALS: i32 = 8;

/// What `$schema` names, without its scheme and a last `#`.
const DRAFTS: [&str; 5] = [
    "json-schema.org/draft-04/schema",
    "json-schema.org/draft-06/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft/2020-12/schema",
];

/// Counts the patterns in a part of a schema, and in what it refers to.
struct Patterns<'a> {
    root: &'a Value,
    /// Counts by reference; 0 while one is counted, because it may hold itself.
    by_reference: HashMap<&'a str, usize>,
}

impl<'a> Patterns<'a> {
    fn count(&mut self, schema: &'a Value) -> usize {
        match schema {
            Value::Array(list) => list.iter().fold(0, |sum, one| self.count(one).saturating_add(sum)),
            Value::Object(map) => {
                let own = usize::from(map.get("pattern").is_some_and(Value::is_string));
                let referred =
                    map.get("$ref").and_then(Value::as_str).map_or(0, |name| self.count_referred(name));
                map.values()
                    .fold(own.saturating_add(referred), |sum, one| self.count(one).saturating_add(sum))
            }
            _ => 0,
        }
    }

    fn count_referred(&mut self, reference: &'a str) -> usize {
        if let Some(known) = self.by_reference.get(reference) {
            return *known;
        }
        self.by_reference.insert(reference, 0);
        let found = reference.strip_prefix('#').and_then(|place| self.root.pointer(place));
        let count = found.map_or(0, |schema| self.count(schema));
        self.by_reference.insert(reference, count);
        count
    }
}

/// Counts the patterns of property names that one object may have to match together.
struct PatternProperties<'a> {
    root: &'a Value,
    /// Counts by reference; 0 while one is counted, because it may hold itself.
    by_reference: HashMap<&'a str, usize>,
}

impl<'a> PatternProperties<'a> {
    fn count(&mut self, schema: &'a Value) -> usize {
        let Value::Object(map) = schema else { return 0 };
        let own = map.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
        let referred = map.get("$ref").and_then(Value::as_str).map_or(0, |name| self.count_referred(name));
        let parts = |name| map.get(name).and_then(Value::as_array).into_iter().flatten();
        let all = parts("allOf").fold(0, |sum: usize, part| self.count(part).saturating_add(sum));
        let any = parts("anyOf").map(|part| self.count(part)).max().unwrap_or(0);
        let one = parts("oneOf").map(|part| self.count(part)).max().unwrap_or(0);
        [own, referred, all, any, one].into_iter().fold(0, usize::saturating_add)
    }

    fn count_referred(&mut self, reference: &'a str) -> usize {
        if let Some(known) = self.by_reference.get(reference) {
            return *known;
        }
        self.by_reference.insert(reference, 0);
        let found = reference.strip_prefix('#').and_then(|place| self.root.pointer(place));
        let count = found.map_or(0, |schema| self.count(schema));
        self.by_reference.insert(reference, count);
        count
    }
}

/// What is counted in a schema while it is checked.
struct Counts<'a> {
    patterns: Patterns<'a>,
    pattern_properties: PatternProperties<'a>,
}

/// Refuses lists that take long to compile, or that no text gets through.
fn check_lists(map: &Map<String, Value>) -> Result<(), String> {
    for name in ["anyOf", "oneOf", "allOf", "prefixItems", "items", "enum"] {
        let Some(Value::Array(list)) = map.get(name) else { continue };
        let (what, most) = if name == "enum" { ("values", MOST_VALUES) } else { ("parts", MOST_PARTS) };
        if list.len() > most {
            return Err(format!("`{name}` with {} {what} is not covered: at most {most} are", list.len()));
        }
        let alternatives = list.iter().filter(|part| !is_plain(part)).count();
        if matches!(name, "anyOf" | "oneOf") && alternatives > MOST_ALTERNATIVES {
            return Err(format!(
                "`{name}` with {alternatives} parts that are not a plain value or type is not covered: at \
                 most {MOST_ALTERNATIVES} are"
            ));
        }
    }
    Ok(())
}

/// True for a schema of values without parts of their own.
fn is_plain(schema: &Value) -> bool {
    let has = |name| schema.get(name).is_some();
    let is_scalar = |name: &str| name != "object" && name != "array";
    has("const") || has("enum") || schema.get("type").and_then(Value::as_str).is_some_and(is_scalar)
}

/// llguidance reads numbers as f64, which would write another number than the schema's.
fn check_numbers(value: &Value) -> Result<(), String> {
    const LARGEST: f64 = 9007199254740992.0;
    match value {
        Value::Array(list) => list.iter().try_for_each(check_numbers),
        Value::Object(map) => map.values().try_for_each(check_numbers),
        Value::Number(number) if number.as_f64().is_some_and(|found| found.abs() >= LARGEST) => {
            Err(format!("the number {number} is not covered: only numbers between -2^53 and 2^53 are"))
        }
        _ => Ok(()),
    }
}

/// Refuses what llguidance passes over: keywords that its draft does not know, options of its own,
/// and a count of properties that one key written twice would reach.
fn check_keywords<'a>(schema: &'a Value, counts: &mut Counts<'a>) -> Result<(), String> {
    let map = match schema {
        Value::Array(list) => return list.iter().try_for_each(|one| check_keywords(one, counts)),
        Value::Object(map) => map,
        _ => return Ok(()),
    };
    let required = map.get("required").and_then(Value::as_array).map_or(0, Vec::len);
    if map.get("minProperties").and_then(Value::as_f64).is_some_and(|least| least > required as f64 + 1.0) {
        return Err(
            "`minProperties` is not covered beyond one more than there are names in `required`".to_string()
        );
    }
    check_properties(map)?;
    check_lists(map)?;
    let of_names = counts.pattern_properties.count(schema);
    if of_names > MOST_PATTERN_PROPERTIES {
        return Err(format!(
            "an object with {of_names} `patternProperties` is not covered: at most {MOST_PATTERN_PROPERTIES} are"
        ));
    }
    map.get("multipleOf").and_then(Value::as_f64).map_or(Ok(()), check_multiple)?;
    map.iter().try_for_each(|(key, value)| match key.as_str() {
        "x-guidance" | "dependencies" | "$recursiveRef" | "extends" | "disallow" | "divisibleBy" => {
            Err(format!("the keyword `{key}` is not covered"))
        }
        "allOf" if counts.patterns.count(value) > MOST_PATTERNS => {
            Err(format!("`allOf` with more than {MOST_PATTERNS} patterns is not covered"))
        }
        name if DATA.contains(&name) => Ok(()),
        name if MAPS.contains(&name) => match value {
            Value::Object(named) => named.values().try_for_each(|one| check_subschema(one, counts)),
            _ => Ok(()),
        },
        _ => check_subschema(value, counts),
    })
}

fn check_multiple(number: f64) -> Result<(), String> {
    if number <= 0.0 {
        return Err("`multipleOf` must be above 0".to_string());
    }
    let (mut units, mut decimals) = (number, 0);
    while units.fract() != 0.0 && decimals <= MOST_DECIMALS {
        units *= 10.0;
        decimals += 1;
    }
    if decimals > MOST_DECIMALS {
        return Err(format!("`multipleOf` {number} is not covered: at most {MOST_DECIMALS} decimals are"));
    }
    for factor in [2.0, 5.0] {
        while units % factor == 0.0 {
            units /= factor;
        }
    }
    if units > MOST_REMAINDERS {
        return Err(format!(
            "`multipleOf` {number} is not covered: without its decimal point and its factors 2 and 5 it may \
             be {MOST_REMAINDERS} at most"
        ));
    }
    Ok(())
}

fn check_draft(schema: &Value) -> Result<(), String> {
    let Some(named) = schema.get("$schema") else { return Ok(()) };
    let draft = named.as_str().unwrap_or_default().trim_end_matches('#');
    let draft = draft.trim_start_matches("https://").trim_start_matches("http://");
    if DRAFTS.contains(&draft) {
        return Ok(());
    }
    Err(format!(
        "`$schema` {named} is not covered: drafts 4, 6, 7, 2019-09 and 2020-12 of json-schema.org are"
    ))
}

fn check_properties(map: &Map<String, Value>) -> Result<(), String> {
    let Some(Value::Object(properties)) = map.get("properties") else { return Ok(()) };
    if properties.len() > MOST_PROPERTIES {
        return Err(format!(
            "an object with {} `properties` is not covered: at most {MOST_PROPERTIES} are",
            properties.len()
        ));
    }
    let required: HashSet<&str> = match map.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => HashSet::new(),
    };
    let optional = properties.keys().filter(|name| !required.contains(name.as_str())).count();
    if optional > MOST_OPTIONAL {
        return Err(format!(
            "an object with {optional} `properties` that are not in `required` is not covered: at most \
             {MOST_OPTIONAL} are"
        ));
    }
    Ok(())
}

/// A `$id` within a schema would change what the references under it mean.
fn check_subschema<'a>(schema: &'a Value, counts: &mut Counts<'a>) -> Result<(), String> {
    let values = match schema {
        Value::Array(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    };
    for value in values {
        if value.get("$id").is_some_and(Value::is_string) {
            return Err("the keyword `$id` is not covered within a schema".to_string());
        }
    }
    check_keywords(schema, counts)
}

/// Calls `change` with each reference to a part of the schema.
fn for_each_reference(schema: &mut Value, change: &mut dyn FnMut(&mut String)) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(|one| for_each_reference(one, change)),
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match value {
                    Value::String(reference) if key == "$ref" && reference.starts_with("#/") => {
                        change(reference)
                    }
                    Value::Object(named) if MAPS.contains(&key.as_str()) => {
                        named.values_mut().for_each(|one| for_each_reference(one, change));
                    }
                    _ if DATA.contains(&key.as_str()) => {}
                    _ => for_each_reference(value, change),
                }
            }
        }
        _ => {}
    }
}

/// llguidance does not read the escapes of a JSON pointer (`~1` is a slash): what such a reference
/// means gets a name of its own in `$defs`.
fn point_without_escapes(schema: &mut Value) {
    let mut names: HashMap<String, String> = HashMap::new();
    for_each_reference(schema, &mut |reference| {
        if reference.contains('~') {
            let name = format!("escaped reference {}", names.len() + 1);
            names.entry(reference.clone()).or_insert(name);
        }
    });
    for (reference, name) in &names {
        let Some(meant) = schema.pointer(&reference[1..]).cloned() else { continue };
        if schema.get("$defs").is_none() {
            schema["$defs"] = json!({});
        }
        schema["$defs"][name] = meant;
    }
    for_each_reference(schema, &mut |reference| {
        if let Some(name) = names.get(reference) {
            *reference = format!("#/$defs/{name}");
        }
    });
}

pub fn schema_of(source: &str) -> Result<Value, String> {
    if source.len() > MOST_BYTES {
        return Err(format!("a schema of {} bytes is not covered: at most {MOST_BYTES} are", source.len()));
    }
    checked_schema(serde_json::from_str(source).map_err(|error| format!("the schema is not JSON: {error}"))?)
}

/// Refuses what llguidance passes over, and writes the schema as it reads it.
pub fn checked_schema(mut schema: Value) -> Result<Value, String> {
    if schema == Value::Bool(true) {
        schema = json!({});
    }
    check_numbers(&schema)?;
    check_draft(&schema)?;
    let mut counts = Counts {
        patterns: Patterns { root: &schema, by_reference: HashMap::new() },
        pattern_properties: PatternProperties { root: &schema, by_reference: HashMap::new() },
    };
    check_keywords(&schema, &mut counts)?;
    if !schema.is_object() {
        return Err("the schema must be an object".to_string());
    }
    point_without_escapes(&mut schema);
    schema["x-guidance"] = json!({"whitespace_pattern": WHITE_SPACE});
    Ok(schema)
}
