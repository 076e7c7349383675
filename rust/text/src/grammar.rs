// SPDX-License-Identifier: Apache-2.0
//! Which tokens may come next in a text that must match a grammar, by llguidance (decision 0037).

use std::sync::Arc;

use llguidance::api::{GrammarInit, TopLevelGrammar};
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Logger, Matcher, ParserFactory};
use serde::Deserialize;
use serde_json::Value;

use crate::abi::{bytes, guard, Text};
use crate::schema::{checked_schema, schema_of};
use crate::tokenizer::Handle;

/// Tags of tool calls. Where they are special tokens, a grammar may name them: `<tool_call>`.
const CALL_TAGS: [&str; 2] = ["<tool_call>", "</tool_call>"];

/// Items of Earley's parser for one mask of a grammar that a client writes. An ambiguous grammar has
/// thousands in a row, and its time grows with their square: 0.3 s for this many, seconds for the
/// library's 50,000. Schemas stay far below.
const ITEMS_OF_A_MASK: usize = 10_000;

/// The tokens of a tokenizer as a trie of bytes.
pub struct Vocabulary {
    factory: ParserFactory,
    num_ids: usize,
    /// Tokens that begin with a space, where a text's first space is not written.
    lost_first: Option<SimpleVob>,
}

/// A grammar and its place in one text. Belongs to one thread at a time.
pub struct Place {
    matcher: Matcher,
    vocabulary: Arc<Vocabulary>,
}

#[derive(Clone, Copy)]
enum Kind {
    JsonSchema,
    Regex,
    Choice,
    Lark,
    LarkWithSchemas,
}

/// In the order of the header.
const KINDS: [Kind; 5] = [Kind::JsonSchema, Kind::Regex, Kind::Choice, Kind::Lark, Kind::LarkWithSchemas];

unsafe fn text_of<'a>(source: *const u8, size: usize) -> Result<&'a str, String> {
    std::str::from_utf8(bytes(source, size)).map_err(|error| format!("the text is not UTF-8: {error}"))
}

impl Vocabulary {
    fn new(tokenizer: &Handle, num_ids: usize) -> Result<Vocabulary, String> {
        let mut words = tokenizer.token_bytes(num_ids).ok_or(
            "the tokenizer's decoder does not say the bytes of its tokens (it is neither byte-level nor \
             SentencePiece's): answers of a given form cannot be had with it",
        )?;
        for (id, name) in tokenizer.special_tokens(&CALL_TAGS, num_ids) {
            words[id] = [&[TokTrie::SPECIAL_TOKEN_MARKER], name.as_bytes()].concat();
        }
        Vocabulary::of_words(words, tokenizer.drops_first_space())
    }

    fn of_words(mut words: Vec<Vec<u8>>, drops_first_space: bool) -> Result<Vocabulary, String> {
        let num_ids = words.len();
        // The end of a text is a token of its own here; the caller knows which ids end a text.
        words.push([&[TokTrie::SPECIAL_TOKEN_MARKER], b"<end>".as_slice()].concat());
        let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, num_ids as u32), &words);
        let lost_first = drops_first_space.then(|| {
            let mut lost = trie.alloc_token_set();
            for (id, word) in words.iter().enumerate() {
                if word.first() == Some(&b' ') {
                    lost.allow_token(id as u32);
                }
            }
            lost
        });
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&env).map_err(|error| error.to_string())?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Vocabulary { factory, num_ids, lost_first })
    }

    fn compile(&self, kind: Kind, source: &str) -> Result<Matcher, String> {
        let text = if matches!(kind, Kind::Regex) { source } else { source.trim() };
        if text.is_empty() {
            return Err("it is empty".to_string());
        }
        let mut limits = self.factory.limits().clone();
        if matches!(kind, Kind::Lark) {
            limits.step_max_items = ITEMS_OF_A_MASK;
        }
        let grammar = match kind {
            Kind::JsonSchema => TopLevelGrammar::from_json_schema(schema_of(source)?),
            Kind::Regex => TopLevelGrammar::from_regex(source),
            Kind::Choice => TopLevelGrammar::from_lark(lark_of_choice(source)?),
            Kind::Lark => TopLevelGrammar::from_lark(source.to_string()),
            Kind::LarkWithSchemas => TopLevelGrammar::from_lark(lark_with_schemas(source)?),
        };
        let mut parser = self
            .factory
            .create_parser_from_init_ext(
                GrammarInit::Serialized(grammar),
                Logger::new(0, 0),
                InferenceCapabilities::default(),
                limits,
            )
            .map_err(|error| in_our_words(&format!("{error:#}")))?;
        let warnings = parser.grammar_warnings();
        if !warnings.is_empty() {
            return Err(warnings.join("; "));
        }
        Ok(Matcher::new(Ok(parser)))
    }
}

/// llguidance's refusals, without its options, which nobody can set here.
fn in_our_words(error: &str) -> String {
    if let Some(keys) = error.strip_prefix("Unimplemented keys: ") {
        return format!("keywords that are not covered: {}", keys.replace(['[', ']'], ""));
    }
    if let Some(format) = error.strip_prefix("Unknown format: ") {
        return format!("the format `{format}` is not covered");
    }
    if error.starts_with("oneOf constraints are not supported") {
        return "`oneOf` with parts that overlap is not covered: write anyOf, if one or more may hold"
            .to_string();
    }
    if let (true, Some((_, reference))) =
        (error.starts_with("Only absolute $ref's"), error.split_once("ref '"))
    {
        return format!(
            "`$ref` to `{}` is not covered: only to a part of the schema, `#/...`",
            reference.trim_end_matches('\'')
        );
    }
    error.to_string()
}

/// Why a grammar does not say the next token.
fn stop_in_our_words(error: &str) -> String {
    if error.contains("NoExtension") {
        return "no token of the vocabulary goes on with it".to_string();
    }
    format!("it needs more work than its limits allow ({})", error.lines().next().unwrap_or_default())
}

fn lark_of_choice(source: &str) -> Result<String, String> {
    let texts: Vec<String> = serde_json::from_str(source).map_err(|error| error.to_string())?;
    let alternatives: Vec<String> = texts.iter().map(|text| Value::from(text.as_str()).to_string()).collect();
    Ok(format!("start: {}", alternatives.join(" | ")))
}

#[derive(Deserialize)]
struct LarkWithSchemas {
    lark: String,
    schemas: Vec<Value>,
}

fn lark_with_schemas(source: &str) -> Result<String, String> {
    let LarkWithSchemas { mut lark, schemas } =
        serde_json::from_str(source).map_err(|error| error.to_string())?;
    for (place, schema) in schemas.into_iter().enumerate() {
        lark.push_str(&format!("\njson_{place}: %json {}", checked_schema(schema)?));
    }
    Ok(lark)
}

impl Place {
    fn beginning(vocabulary: Arc<Vocabulary>, kind: Kind, source: &str) -> Result<Place, String> {
        let mut made = Place { matcher: vocabulary.compile(kind, source)?, vocabulary };
        let mut first = vec![0; made.vocabulary.num_ids.div_ceil(32)];
        let may_end = made.mask(&mut first, true)?;
        if !may_end && first.iter().all(|word| *word == 0) {
            return Err("no text of the tokenizer's tokens matches".to_string());
        }
        Ok(made)
    }

    /// Writes one bit for each id into `words`. Returns true where the text may end here.
    fn mask(&mut self, words: &mut [u32], begins_text: bool) -> Result<bool, String> {
        let mut mask =
            self.matcher.compute_mask_or_eos().map_err(|error| stop_in_our_words(&error.to_string()))?;
        if let (true, Some(lost)) = (begins_text, &self.vocabulary.lost_first) {
            mask.sub(lost);
        }
        let end = self.vocabulary.num_ids as u32;
        let may_end = mask.is_allowed(end);
        mask.disallow_token(end);
        let found = mask.as_slice();
        let size = found.len().min(words.len());
        words[..size].copy_from_slice(&found[..size]);
        words[size..].fill(0);
        Ok(may_end)
    }
}

/// # Safety
/// `tokenizer` is a handle of `convoy_tokenizer_create`; `vocabulary` may be written.
#[no_mangle]
pub unsafe extern "C" fn convoy_vocabulary_create(
    tokenizer: *const Handle,
    num_ids: usize,
    vocabulary: *mut *const Vocabulary,
    error: *mut Text,
) -> i32 {
    guard(error, || {
        vocabulary.write(Arc::into_raw(Arc::new(Vocabulary::new(&*tokenizer, num_ids)?)));
        Ok(())
    })
}

/// # Safety
/// `vocabulary` comes from `convoy_vocabulary_create`, once.
#[no_mangle]
pub unsafe extern "C" fn convoy_vocabulary_free(vocabulary: *const Vocabulary) {
    if !vocabulary.is_null() {
        guard(std::ptr::null_mut(), || {
            drop(Arc::from_raw(vocabulary));
            Ok(())
        });
    }
}

/// # Safety
/// As in the header.
#[no_mangle]
pub unsafe extern "C" fn convoy_grammar_compile(
    vocabulary: *const Vocabulary,
    kind: i32,
    source: *const u8,
    size: usize,
    place: *mut *mut Place,
    error: *mut Text,
) -> i32 {
    guard(error, || {
        let source = text_of(source, size)?;
        Arc::increment_strong_count(vocabulary);
        let made = Place::beginning(Arc::from_raw(vocabulary), KINDS[kind as usize], source)?;
        place.write(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// # Safety
/// As in the header.
#[no_mangle]
pub unsafe extern "C" fn convoy_grammar_check(
    kind: i32,
    source: *const u8,
    size: usize,
    error: *mut Text,
) -> i32 {
    guard(error, || {
        let bytes = (0..=255u8).map(|byte| vec![byte]).collect();
        let vocabulary = Arc::new(Vocabulary::of_words(bytes, false)?);
        Place::beginning(vocabulary, KINDS[kind as usize], text_of(source, size)?).map(drop)
    })
}

/// # Safety
/// `place` comes from `convoy_grammar_compile` or from here, and no other thread uses it.
#[no_mangle]
pub unsafe extern "C" fn convoy_grammar_copy(place: *const Place) -> *mut Place {
    let mut copy = std::ptr::null_mut();
    guard(std::ptr::null_mut(), || {
        let place = &*place;
        copy = Box::into_raw(Box::new(Place {
            matcher: place.matcher.clone(),
            vocabulary: place.vocabulary.clone(),
        }));
        Ok(())
    });
    copy
}

/// # Safety
/// `place` comes from `convoy_grammar_compile` or `convoy_grammar_copy`, once.
#[no_mangle]
pub unsafe extern "C" fn convoy_grammar_free(place: *mut Place) {
    if !place.is_null() {
        guard(std::ptr::null_mut(), || {
            drop(Box::from_raw(place));
            Ok(())
        });
    }
}

/// # Safety
/// As in the header.
#[no_mangle]
pub unsafe extern "C" fn convoy_grammar_mask(
    place: *mut Place,
    begins_text: i32,
    words: *mut u32,
    num_words: usize,
    may_end: *mut i32,
    error: *mut Text,
) -> i32 {
    guard(error, || {
        let words = std::slice::from_raw_parts_mut(words, num_words);
        may_end.write(i32::from((*place).mask(words, begins_text != 0)?));
        Ok(())
    })
}

/// # Safety
/// As in the header.
#[no_mangle]
pub unsafe extern "C" fn convoy_grammar_take(place: *mut Place, id: i32, error: *mut Text) -> i32 {
    guard(error, || {
        (*place).matcher.consume_token(id as u32).map_err(|error| stop_in_our_words(&error.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A token for each byte, and a few longer ones.
    fn vocabulary() -> Arc<Vocabulary> {
        let mut words: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
        words.extend(["{\"", "\":", "\", \"", " true", "ab"].map(|word| word.as_bytes().to_vec()));
        Arc::new(Vocabulary::of_words(words, false).unwrap())
    }

    /// The place behind `text`, written byte by byte; `None` where the grammar forbids one.
    fn behind(matcher: &Matcher, text: &str) -> Option<Matcher> {
        let mut matcher = matcher.deep_clone();
        for byte in text.bytes() {
            let mask = matcher.compute_mask_or_eos().unwrap();
            if !mask.is_allowed(u32::from(byte)) {
                return None;
            }
            matcher.consume_token(u32::from(byte)).unwrap();
        }
        Some(matcher)
    }

    fn matches(matcher: &Matcher, text: &str) -> bool {
        behind(matcher, text).is_some_and(|mut end| {
            let mask = end.compute_mask_or_eos().unwrap();
            mask.is_allowed(mask.len() as u32 - 1)
        })
    }

    fn schema(source: &str) -> Result<Matcher, String> {
        vocabulary().compile(Kind::JsonSchema, source)
    }

    /// JSON Schema's own tests: what is accepted admits no text that the suite calls invalid, and
    /// what is refused is named. Of the valid texts a few are not admitted: properties in another
    /// order than the schema's, and numbers like 1e2.
    #[test]
    fn holds_the_suite() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/json_schema/suite.jsonl");
        let vocabulary = vocabulary();
        let (mut accepted, mut valid, mut admitted) = (0, 0, 0);
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let group: Value = serde_json::from_str(line).unwrap();
            let of_group = || format!("{}: {}", group["file"], group["description"]);
            let matcher = match vocabulary.compile(Kind::JsonSchema, &group["schema"].to_string()) {
                Ok(matcher) => matcher,
                Err(error) => {
                    assert!(!error.contains("Unimplemented") && error.len() > 10, "{}: {error}", of_group());
                    continue;
                }
            };
            accepted += 1;
            for test in group["tests"].as_array().unwrap() {
                let found = matches(&matcher, &test["data"].to_string());
                if test["valid"] == true {
                    valid += 1;
                    admitted += i32::from(found);
                } else {
                    assert!(!found, "{} admits {}", of_group(), test["data"]);
                }
            }
        }
        assert!(accepted >= 140, "only {accepted} groups are accepted");
        assert!(admitted * 100 >= valid * 90, "only {admitted} of {valid} valid texts are admitted");
    }

    #[test]
    fn refuses_by_name() {
        for (source, words) in [
            (r#"{"type": "object", "uniqueItems": true}"#, "not covered: \"uniqueItems\""),
            (r#"{"properties": {"a": {"not": {}}}}"#, "not covered: \"not\""),
            (r#"{"type": "string", "format": "iri"}"#, "the format `iri` is not covered"),
            (r#"{"oneOf": [{"type": "integer"}, {"minimum": 2}]}"#, "`oneOf` with parts that overlap"),
            (r#"{"dependencies": {"a": ["b"]}}"#, "the keyword `dependencies` is not covered"),
            (r#"{"x-guidance": {"lenient": true}, "not": {}}"#, "the keyword `x-guidance` is not covered"),
            (r#"{"properties": {"a": {"$id": "b"}}}"#, "the keyword `$id` is not covered within a schema"),
            (r#"{"$ref": "https://example.com/a.json"}"#, "`https://example.com/a.json`"),
            (r#"{"type": "objekt"}"#, "objekt"),
            (r#"{"const": 9007199254740993}"#, "the number 9007199254740993 is not covered"),
            (r#"{"enum": [{"a": -12345678901234567890123}]}"#, "is not covered: only numbers between"),
            (r#"{"a": "#, "the schema is not JSON"),
            ("[]", "the schema must be an object"),
        ] {
            let error = schema(source).err().unwrap_or_default();
            assert!(error.contains(words), "{source}: {error}");
        }
        for number in ["0", "-2"] {
            let error = schema(&format!(r#"{{"multipleOf": {number}}}"#)).err().unwrap();
            assert!(error.contains("`multipleOf` must be above 0"), "{error}");
        }
        assert!(schema(r#"{"properties": {"multipleOf": {"const": 0}}}"#).is_ok(), "a name of the author's");
        let pattern = r#"{"pattern": "a.{20}b"}"#;
        let patterns = format!(r#"{{"type": "string", "allOf": [{}]}}"#, [pattern; 9].join(","));
        assert!(schema(&patterns).err().unwrap_or_default().contains("more than 8 patterns"));
        let referred = json!({"$defs": {"one": {"pattern": "a.{20}b"}, "three": {"allOf": [{"$ref": "#/$defs/one"},
            {"$ref": "#/$defs/one"}, {"$ref": "#/$defs/one"}]}, "itself": {"items": {"$ref": "#/$defs/itself"}}},
            "allOf": [{"$ref": "#/$defs/three"}, {"$ref": "#/$defs/three"}, {"$ref": "#/$defs/three"}]});
        assert!(schema(&referred.to_string()).err().unwrap_or_default().contains("more than 8 patterns"));
        // Names of properties and data are no keywords.
        for source in [
            r#"{"properties": {"dependencies": {"type": "string"}, "x-guidance": {}}}"#,
            r#"{"enum": [{"x-guidance": 1, "$id": "a"}]}"#,
        ] {
            assert!(schema(source).is_ok(), "{source}");
        }
    }

    #[test]
    fn refuses_what_takes_too_long() {
        let properties = |count: usize| -> Value {
            let named = |place| (format!("p{place}"), json!({"type": "null"}));
            Value::Object((0..count).map(named).collect())
        };
        let optional =
            |count| schema(&json!({"type": "object", "properties": properties(count)}).to_string());
        let most = optional(480).unwrap();
        assert!(matches(&most, r#"{"p3":null,"p479":null}"#));
        assert!(optional(481)
            .err()
            .unwrap_or_default()
            .contains("481 `properties` that are not in `required`"));
        let names: Vec<String> = (0..1000).map(|place| format!("p{place}")).collect();
        assert!(schema(&json!({"properties": properties(1000), "required": names}).to_string()).is_ok());
        let long = json!({"const": "a".repeat(3 << 20)}).to_string();
        assert!(schema(&long).err().unwrap_or_default().contains("bytes is not covered"));
    }

    #[test]
    fn an_ambiguous_grammar_ends_soon() {
        // Long tokens, because a mask follows each of them.
        let mut words: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
        words.extend((2..30).map(|count| vec![b'a'; count]));
        let longest = words.len() as u32 - 1;
        let vocabulary = Arc::new(Vocabulary::of_words(words, false).unwrap());
        let steps = |kind, source: &str| {
            let mut matcher = vocabulary.compile(kind, source).unwrap();
            (0..10)
                .take_while(|_| {
                    matcher.compute_mask_or_eos().is_ok() && matcher.consume_token(longest).is_ok()
                })
                .count()
        };
        let hostile = "start: s\ns: s s s s | \"a\" | \"\"";
        let with_schema = json!({"lark": hostile, "schemas": []}).to_string();
        let (tight, loose) = (steps(Kind::Lark, hostile), steps(Kind::LarkWithSchemas, &with_schema));
        assert!(tight < loose, "{tight} {loose}");
        assert_eq!(steps(Kind::Lark, "start: (\"a\" | \"b\" \"c\")*"), 10);
        assert_eq!(steps(Kind::Lark, "start: \"a\" start | \"b\""), 10);
    }

    #[test]
    fn references_have_escapes() {
        let matcher = schema(
            r##"{"$defs": {"a/b": {"items": {"$ref": "#/$defs/a~1b/$defs/c~0"}, "type": "array", "minItems": 1,
                "$defs": {"c~": {"enum": [7]}}}}, "properties": {"x": {"$ref": "#/$defs/a~1b"},
                "y": {"enum": [{"$ref": "#/$defs/a~1b"}]}}, "required": ["x"], "additionalProperties": false}"##,
        )
        .unwrap();
        assert!(matches(&matcher, r#"{"x":[7]}"#) && !matches(&matcher, r#"{"x":[8]}"#));
        assert!(matches(&matcher, r##"{"x":[7],"y":{"$ref":"#/$defs/a~1b"}}"##), "data stays as it is");
        assert!(schema(r##"{"$ref": "#/$defs/a~1b"}"##).is_err());
    }

    #[test]
    fn keeps_the_order_of_properties_and_bounds_white_space() {
        let matcher =
            schema(r#"{"properties": {"b": {"type": "integer"}, "a": {}}, "required": ["b"]}"#).unwrap();
        assert!(matches(&matcher, r#"{"b":1,"a":null}"#));
        assert!(matches(&matcher, "{\n    \"b\": 1\n}"));
        assert!(!matches(&matcher, r#"{"a":null,"b":1}"#));
        assert!(!matches(&matcher, &format!("{{{}\"b\":1}}", " ".repeat(41))));
    }

    #[test]
    fn a_key_twice_is_one_property() {
        assert!(schema(r#"{"type": "object", "minProperties": 2}"#).is_err());
        let matcher = schema(r#"{"required": ["a"], "properties": {"a": {}}, "minProperties": 2}"#).unwrap();
        assert!(matches(&matcher, r#"{"a":1,"b":2}"#) && !matches(&matcher, r#"{"a":1,"a":2}"#));
        let matcher = schema(r#"{"type": "object", "required": ["a", "b"]}"#).unwrap();
        assert!(!matches(&matcher, r#"{"a":1,"a":2}"#));
        let matcher = schema(r#"{"properties": {"a": {"const": 1}}, "required": ["a"]}"#).unwrap();
        assert!(!matches(&matcher, r#"{"a":1,"a":2}"#));
    }

    #[test]
    fn knows_regexes_choices_and_grammars() {
        let vocabulary = vocabulary();
        let regex = vocabulary.compile(Kind::Regex, r"a/[0-9]{2}").unwrap();
        assert!(matches(&regex, "a/07") && !matches(&regex, "a/7") && !matches(&regex, "a/077"));
        let choice = vocabulary.compile(Kind::Choice, "[\"yes\", \"a \\\"b\\\"\\n\", \"\u{e4}\"]").unwrap();
        assert!(matches(&choice, "yes") && matches(&choice, "a \"b\"\n") && matches(&choice, "\u{e4}"));
        assert!(!matches(&choice, "no"));
        let lark = vocabulary.compile(Kind::Lark, "start: \"(\" start \")\" | \"x\"").unwrap();
        assert!(matches(&lark, "((x))") && !matches(&lark, "((x)"));
        assert!(vocabulary.compile(Kind::Regex, "(").is_err());
        assert!(vocabulary.compile(Kind::Lark, "start: missing").is_err());
        for (kind, source) in [(Kind::Regex, ""), (Kind::Lark, " ")] {
            assert_eq!(vocabulary.compile(kind, source).err().unwrap_or_default(), "it is empty");
        }
        assert!(matches(&vocabulary.compile(Kind::Regex, " ").unwrap(), " "));
    }

    #[test]
    fn a_grammar_holds_schemas() {
        let vocabulary = vocabulary();
        let compiled = |source: Value| vocabulary.compile(Kind::LarkWithSchemas, &source.to_string());
        let lark = r#"start: "a " json_0 "}\n" | "b " json_1"#;
        let integer = json!({"type": "integer"});
        let grammar = compiled(json!({"lark": lark, "schemas": [{"properties": {"x": integer},
            "type": "object", "additionalProperties": false}, {"enum": ["c"]}]}))
        .unwrap();
        assert!(matches(&grammar, "a {\"x\": 1}}\n") && matches(&grammar, "b \"c\""));
        assert!(!matches(&grammar, "a {\"y\": 1}}\n") && !matches(&grammar, "a \"c\"}\n"));
        assert!(behind(&grammar, &format!("a {{{}", " ".repeat(41))).is_none());
        let error = compiled(json!({"lark": lark, "schemas": [{}, {"not": {}}]})).err().unwrap();
        assert!(error.contains("not"), "{error}");
        let error = compiled(json!({"lark": lark, "schemas": [{"minProperties": 2}, {}]})).err().unwrap();
        assert!(error.contains("minProperties"), "{error}");
    }

    #[test]
    fn a_grammar_names_special_tokens() {
        let mut words: Vec<Vec<u8>> = ["a", "<", "tool_call>"].map(|word| word.as_bytes().to_vec()).to_vec();
        words.push(b"\xff<tool_call>".to_vec());
        let vocabulary = Arc::new(Vocabulary::of_words(words, false).unwrap());
        let matcher = vocabulary.compile(Kind::Lark, "start: TEXT <tool_call> \"a\"\nTEXT: /[a<]*/").unwrap();
        let mut place = Place { matcher, vocabulary };
        let mut mask = [0];
        place.mask(&mut mask, true).unwrap();
        assert_eq!(mask[0], 0b1011, "the tag, and not its letters");
        place.matcher.consume_token(3).unwrap();
        place.mask(&mut mask, false).unwrap();
        assert_eq!(mask[0], 0b0001);
    }

    #[test]
    fn ends_only_where_the_grammar_does() {
        let vocabulary = vocabulary();
        let matcher = vocabulary.compile(Kind::Choice, "[\"a\", \"ab\"]").unwrap();
        let mut place = Place { matcher, vocabulary: vocabulary.clone() };
        let mut words = vec![0; vocabulary.num_ids.div_ceil(32)];
        assert!(!place.mask(&mut words, true).unwrap());
        let token = vocabulary.num_ids as i32 - 1; // "ab"
        assert_eq!(unsafe { convoy_grammar_take(&mut place, token, std::ptr::null_mut()) }, 0);
        assert!(place.mask(&mut words, false).unwrap());
        assert!(words.iter().all(|word| *word == 0), "nothing follows but the end");
    }

    #[test]
    fn a_first_space_that_is_not_written_does_not_count() {
        let words: Vec<Vec<u8>> = [" a", "a", " "].map(|word| word.as_bytes().to_vec()).to_vec();
        let vocabulary = Arc::new(Vocabulary::of_words(words, true).unwrap());
        let matcher = vocabulary.compile(Kind::Regex, " ?a").unwrap();
        let mut place = Place { matcher, vocabulary };
        let mut mask = [0];
        place.mask(&mut mask, true).unwrap();
        assert_eq!(mask[0], 0b010);
        place.mask(&mut mask, false).unwrap();
        assert_eq!(mask[0], 0b111);
    }
}
