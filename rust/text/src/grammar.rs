// SPDX-License-Identifier: Apache-2.0
//! Which tokens may come next in a text that must match a grammar, by llguidance (decision 0037).

use std::sync::Arc;

use llguidance::api::{GrammarInit, ParserLimits, TopLevelGrammar};
use llguidance::earley::lexerspec::LexerSpec;
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Logger, Matcher, ParserFactory, TokenParser};
use serde::Deserialize;
use serde_json::Value;

use crate::abi::{bytes, guard, Text};
use crate::schema::{checked_schema, schema_of, MOST_BYTES};
use crate::tokenizer::Handle;

/// Tags of tool calls. Where they are special tokens, a grammar may name them: `<tool_call>`.
const CALL_TAGS: [&str; 2] = ["<tool_call>", "</tool_call>"];

/// Items of Earley's parser for one mask of a grammar that a client writes. An ambiguous grammar has
/// thousands in a row, and its time grows with their square: 0.3 s for this many, seconds for the
/// library's 50,000. Schemas stay far below.
const ITEMS_OF_A_MASK: usize = 10_000;

/// Places of a schema in which a text may be at once: `anyOf` of objects with many optional properties
/// has thousands. A row of so many takes a quarter of a millisecond.
const ITEMS_OF_A_SCHEMAS_ROW: usize = 5000;

/// Work of all masks of an answer under a grammar that a client writes, and what each token adds to it.
/// A unit is one item times the items of a row, because an ambiguous grammar's rows grow with the text
/// and their time with the square. 10 ns or so each; JSON and arithmetic need 6,000 to 9,000 a token
/// with a vocabulary of long tokens.
const WORK_OF_AN_ANSWER: usize = 5_000_000;
const WORK_OF_A_TOKEN: usize = 20_000;

/// The most bytes of a grammar that a client writes: the compiler calls itself for each rule that a
/// rule names, so that they bound its stack.
const MOST_BYTES_OF_LARK: usize = 256 << 10;

/// The stack of a compile. Of it, memory is only what a grammar touches.
const STACK: usize = 512 << 20;

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
    /// Work that is left for the masks to come; none where it is not bounded.
    work_left: Option<usize>,
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
        check_size(kind, text.len())?;
        std::thread::scope(|scope| {
            let on_large_stack = std::thread::Builder::new().stack_size(STACK);
            let compile = || self.compile_checked(kind, source);
            let running = on_large_stack.spawn_scoped(scope, compile).map_err(|error| error.to_string())?;
            running.join().map_err(|_| "the compiler of grammars has failed".to_string())?
        })
    }

    fn compile_checked(&self, kind: Kind, source: &str) -> Result<Matcher, String> {
        let mut limits = self.factory.limits().clone();
        match kind {
            Kind::Lark => limits.step_max_items = ITEMS_OF_A_MASK,
            Kind::JsonSchema | Kind::LarkWithSchemas => limits.max_items_in_row = ITEMS_OF_A_SCHEMAS_ROW,
            Kind::Regex | Kind::Choice => {}
        }
        let grammar = match kind {
            Kind::JsonSchema => TopLevelGrammar::from_json_schema(schema_of(source)?),
            Kind::Regex => TopLevelGrammar::from_regex(source),
            Kind::Choice => TopLevelGrammar::from_lark(lark_of_choice(source)?),
            Kind::Lark => TopLevelGrammar::from_lark(source.to_string()),
            Kind::LarkWithSchemas => TopLevelGrammar::from_lark(lark_with_schemas(source)?),
        };
        let mut parser = self.parser_of(grammar, limits).map_err(|error| in_our_words(&error))?;
        let warnings = parser.grammar_warnings();
        if !warnings.is_empty() {
            return Err(warnings.join("; "));
        }
        Ok(Matcher::new(Ok(parser)))
    }

    fn parser_of(&self, grammar: TopLevelGrammar, limits: ParserLimits) -> Result<TokenParser, String> {
        let env = Some(self.factory.tok_env().clone());
        let (grammar, lexer) = GrammarInit::Serialized(grammar)
            .to_internal(env, limits.clone())
            .map_err(|error| format!("{error:#}"))?;
        check_lexer(&lexer, limits.clone())?;
        self.factory
            .create_parser_from_init_ext(
                GrammarInit::Internal(grammar, lexer),
                Logger::new(0, 0),
                InferenceCapabilities::default(),
                limits,
            )
            .map_err(|error| format!("{error:#}"))
    }
}

fn check_size(kind: Kind, size: usize) -> Result<(), String> {
    let most = match kind {
        Kind::JsonSchema | Kind::LarkWithSchemas => return Ok(()),
        Kind::Regex | Kind::Choice => MOST_BYTES,
        Kind::Lark => MOST_BYTES_OF_LARK,
    };
    if size > most {
        return Err(format!("{size} bytes are not covered: at most {most} are"));
    }
    Ok(())
}

/// llguidance finds the bytes with which a text may begin without a limit of its own, and looks behind
/// each for a whole text: for hours, where a number's remainders or two expressions together have many
/// states. This does the same beforehand with its limit for a compile.
fn check_lexer(spec: &LexerSpec, mut limits: ParserLimits) -> Result<(), String> {
    let mut lexer = spec.to_regex_vec(&mut limits).map_err(|error| format!("{error:#}"))?;
    lexer.set_fuel(limits.initial_lexer_fuel);
    let beginning = lexer.initial_state(&spec.all_lexemes());
    for byte in 0..=255 {
        lexer.transition(beginning, byte);
        if lexer.has_error() {
            return Err("its expressions, or the numbers of `multipleOf`, have too many states".to_string());
        }
    }
    Ok(())
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
    if error.starts_with("schema too large") || error.starts_with("panic") {
        return "its parts are too many together: `anyOf` and `oneOf` within `allOf` multiply them"
            .to_string();
    }
    if let Some((_, limit)) = error.split_once("(grammar) too big (limit for this grammar: ") {
        return format!(
            "its texts and expressions together take more than {} steps to compile: shorten the longest list \
             or text",
            limit.trim_end_matches(')')
        );
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

/// "Current row has 2101 items; max is 2000; ...".
fn items_of_a_row(error: &str) -> Option<(&str, &str)> {
    let (found, rest) = error.split_once("row has ")?.1.split_once(" items; max is ")?;
    Some((found, rest.split(';').next()?))
}

/// Why a grammar does not say the next token.
fn stop_in_our_words(error: &str) -> String {
    if error.contains("NoExtension") {
        return "no token of the vocabulary goes on with it".to_string();
    }
    if let Some((found, most)) = items_of_a_row(error) {
        return format!("a text may be at {found} of its places at once: at most {most} are covered");
    }
    format!("it needs more work than its limits allow ({})", error.lines().next().unwrap_or_default())
}

/// The texts are one terminal: as rules, each would be a place of its own in a text.
fn lark_of_choice(source: &str) -> Result<String, String> {
    let texts: Vec<String> = serde_json::from_str(source).map_err(|error| error.to_string())?;
    let alternatives: Vec<String> = texts.iter().map(|text| Value::from(text.as_str()).to_string()).collect();
    Ok(format!("start: CHOICE\nCHOICE: {}", alternatives.join(" | ")))
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
        let work_left = matches!(kind, Kind::Lark).then_some(WORK_OF_AN_ANSWER);
        let mut made = Place { matcher: vocabulary.compile(kind, source)?, vocabulary, work_left };
        let mut first = vec![0; made.vocabulary.num_ids.div_ceil(32)];
        let may_end = made.mask(&mut first, true)?;
        if !may_end && first.iter().all(|word| *word == 0) {
            return Err("no text of the tokenizer's tokens matches".to_string());
        }
        made.check_first_step(&first)?;
        Ok(made)
    }

    /// A beginning with too many places is found when a token is taken, which would end every answer.
    fn check_first_step(&self, first: &[u32]) -> Result<(), String> {
        let Some((word, bits)) = first.iter().enumerate().find(|(_, bits)| **bits != 0) else {
            return Ok(());
        };
        let token = 32 * word as u32 + bits.trailing_zeros();
        let taken = self.matcher.clone().consume_token(token);
        taken.map_err(|error| stop_in_our_words(&error.to_string()))
    }

    /// Writes one bit for each id into `words`. Returns true where the text may end here.
    fn mask(&mut self, words: &mut [u32], begins_text: bool) -> Result<bool, String> {
        let mut mask =
            self.matcher.compute_mask_or_eos().map_err(|error| stop_in_our_words(&error.to_string()))?;
        self.pay_mask()?;
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

    fn pay_mask(&mut self) -> Result<(), String> {
        let (Some(left), Ok(done)) = (self.work_left, self.matcher.last_step_stats()) else { return Ok(()) };
        let work = done.all_items * done.all_items / done.rows.max(1);
        let left = (left + WORK_OF_A_TOKEN).checked_sub(work).ok_or(
            "it needs more work than its limits allow (the whole answer's: write it without ambiguity)",
        )?;
        self.work_left = Some(left);
        Ok(())
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
pub unsafe extern "C" fn convoy_grammar_copy(place: *const Place, own_lexer: i32) -> *mut Place {
    let mut copy = std::ptr::null_mut();
    guard(std::ptr::null_mut(), || {
        let place = &*place;
        copy = Box::into_raw(Box::new(Place {
            matcher: if own_lexer == 0 { place.matcher.clone() } else { place.matcher.deep_clone() },
            vocabulary: place.vocabulary.clone(),
            work_left: place.work_left,
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
        let names: Vec<String> = (0..3001).map(|place| format!("p{place}")).collect();
        let wide = json!({"properties": properties(3001), "required": names}).to_string();
        assert!(schema(&wide).err().unwrap_or_default().contains("3001 `properties`"));
        let long = json!({"const": "a".repeat(3 << 20)}).to_string();
        assert!(schema(&long).err().unwrap_or_default().contains("bytes is not covered"));
    }

    #[test]
    fn refuses_long_lists_by_their_counts() {
        let refused = |given: Value, words: &str| {
            let error = schema(&given.to_string()).err().unwrap_or_default();
            assert!(error.contains(words), "{error}");
        };
        let numbers: Vec<usize> = (0..50_001).collect();
        refused(json!({"enum": numbers}), "`enum` with 50001 values is not covered: at most 50000 are");
        let consts = |count: usize| -> Value { (0..count).map(|place| json!({"const": place})).collect() };
        refused(json!({"anyOf": consts(10_001)}), "`anyOf` with 10001 parts is not covered: at most 10000");
        let objects = |count: usize| -> Value {
            (0..count)
                .map(|place| {
                    json!({"properties": {"kind": {"const": place}}, "required": ["kind"],
                "type": "object", "additionalProperties": false})
                })
                .collect()
        };
        refused(
            json!({"items": {"oneOf": objects(2001)}, "type": "array"}),
            "`oneOf` with 2001 parts that are",
        );
        assert!(matches(&schema(&json!({"anyOf": consts(10_000)}).to_string()).unwrap(), "9999"));
        assert!(matches(&schema(&json!({"anyOf": objects(2000)}).to_string()).unwrap(), r#"{"kind":1999}"#));
        let patterns = |from: usize, count: usize| -> Value {
            let named = |place| (format!("^{place}x"), json!({"type": "null"}));
            Value::Object((from..from + count).map(named).collect())
        };
        let halves = json!([{"patternProperties": patterns(0, 16)}, {"$ref": "#/$defs/other"}]);
        let of_halves = |other: usize| json!({"$defs": {"other": {"patternProperties": patterns(16, other)}}, "allOf": halves});
        refused(of_halves(17), "33 `patternProperties` is not covered: at most 32");
        assert!(schema(&of_halves(16).to_string()).is_ok());
        let texts: Vec<String> =
            (1..130_000u64).map(|place| format!("{:012}", place.pow(3) % 999_999_999_989)).collect();
        let error = vocabulary().compile(Kind::Choice, &json!(texts).to_string()).err().unwrap_or_default();
        assert!(error.contains("take more than 1000000 steps to compile"), "{error}");
    }

    #[test]
    fn a_long_list_of_choices_has_answers() {
        let texts: Vec<String> = (0..10_000).map(|place| format!("{}", place * 7919 % 100_003)).collect();
        let choice = Place::beginning(vocabulary(), Kind::Choice, &json!(texts).to_string()).unwrap();
        assert!(matches(&choice.matcher, &texts[9999]) && !matches(&choice.matcher, "100003"));
    }

    #[test]
    fn a_beginning_that_no_answer_gets_through_is_refused() {
        let optional: serde_json::Map<String, Value> =
            (0..480).map(|at| (format!("p{at}"), json!({}))).collect();
        let wide = json!({"type": "object", "properties": optional});
        let beginning = |count: usize| {
            let parts = vec![wide.clone(); count];
            Place::beginning(vocabulary(), Kind::JsonSchema, &json!({"anyOf": parts}).to_string())
        };
        assert!(beginning(1).is_ok());
        let error = beginning(4).err().unwrap_or_default();
        assert!(error.contains("places at once: at most 5000 are covered"), "{error}");
    }

    #[test]
    fn white_space_is_bounded_between_any_two_signs() {
        let signs = [
            "{", "\"a\"", ":", "[", "1", ",", "true", ",", "{", "\"b\"", ":", "null", "}", ",", "[", "]",
            ",", "{", "}", "]", ",", "\"c\"", ":", "\"d\"", "}",
        ];
        let typed = json!({"properties": {"a": {"type": "array", "prefixItems": [{"type": "integer"}, {"enum":
            [true]}, {"patternProperties": {"^b": {"type": "null"}}}, {"type": "array"}, {"type": "object"}]},
            "c": {"type": "string"}}, "type": "object", "required": ["a"], "additionalProperties": false});
        for given in [json!({"type": "object"}), json!({}), typed] {
            let alone = schema(&given.to_string()).unwrap();
            let called = json!({"lark": "start: \"call: \" json_0 \"!\"", "schemas": [given]}).to_string();
            let called = vocabulary().compile(Kind::LarkWithSchemas, &called).unwrap();
            for gap in 0..=signs.len() {
                let spaced = |blanks| signs[..gap].concat() + &" ".repeat(blanks) + &signs[gap..].concat();
                let is_within = gap > 0 && gap < signs.len();
                for (blanks, is_allowed) in [(0, true), (1, is_within), (40, is_within), (41, false)] {
                    let text = spaced(blanks);
                    assert_eq!(matches(&alone, &text), is_allowed, "{given}: {blanks} blanks in {text}");
                    let text = format!("call: {text}!");
                    assert_eq!(matches(&called, &text), is_allowed, "{given}: {blanks} blanks in {text}");
                }
            }
        }
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

    /// How many of `count` tokens, `text` byte by byte again and again, the grammar says.
    fn tokens_said(source: &str, text: &str, count: usize) -> usize {
        let mut place = Place::beginning(vocabulary(), Kind::Lark, source).unwrap();
        let mut words = vec![0; place.vocabulary.num_ids.div_ceil(32)];
        text.bytes()
            .cycle()
            .take(count)
            .take_while(|byte| {
                place.matcher.consume_token(u32::from(*byte)).unwrap();
                place.mask(&mut words, false).is_ok()
            })
            .count()
    }

    #[test]
    fn an_answer_has_a_bound_of_its_own() {
        let sequences = "start: a a a a a a a\na: b b b b b b | b\nb: c c c c | c\nc: \"x\" | \"y\" | c c";
        assert!((20..60).contains(&tokens_said(sequences, "x", 300)));
        let fourfold = "start: s\ns: s s s s | \"a\" | \"b\" | \"\"";
        assert!((20..120).contains(&tokens_said(fourfold, "ab", 300)));
        let json = r#"start: value
            value: object | array | STRING | NUMBER | "true" | "false" | "null"
            object: "{" [pair ("," pair)*] "}"
            pair: STRING ":" value
            array: "[" [value ("," value)*] "]"
            STRING: /"[^"]*"/
            NUMBER: /-?[0-9]+(\.[0-9]+)?/"#;
        assert_eq!(tokens_said(json, "[", 2000), 2000);
        assert_eq!(tokens_said(json, r#"{"a":[1,2,[3,{}]],"b":"#, 2000), 2000);
        let arithmetic = r#"start: sum
            sum: sum "+" term | sum "-" term | term
            term: term "*" factor | factor
            factor: /[0-9]+/ | "(" sum ")""#;
        assert_eq!(tokens_said(arithmetic, "(1*2+3-(4+5)*", 2000), 2000);
        let query = r#"start: query
            query: "SELECT " columns " FROM " NAME " WHERE " condition
            columns: NAME ("," NAME)*
            condition: condition " AND " test | test
            test: NAME "=" value
            value: /[0-9]+/ | "(" query ")"
            NAME: /[a-z]+/"#;
        assert_eq!(tokens_said(query, "SELECT a,b FROM c WHERE d=1 AND e=(", 2000), 2000);
    }

    #[test]
    fn numbers_and_expressions_of_many_states_are_refused() {
        for number in ["9999991", "99991", "10007", "0.10007", "1e-9"] {
            let error = schema(&format!(r#"{{"type": "integer", "multipleOf": {number}}}"#)).err().unwrap();
            assert!(error.contains("`multipleOf`") && error.contains("not covered"), "{error}");
        }
        for number in ["9973", "10000", "1000000", "0.01", "0.00000001"] {
            assert!(schema(&format!(r#"{{"type": "number", "multipleOf": {number}}}"#)).is_ok(), "{number}");
        }
        let (one, other) = (json!({"type": "integer", "multipleOf": 9973}), json!({"multipleOf": 9967}));
        for together in [
            json!({"allOf": [one, other]}),
            json!({"$defs": {"a": one}, "$ref": "#/$defs/a", "multipleOf": 9967}),
            json!({"type": "integer", "multipleOf": 9973, "anyOf": [other, {"multipleOf": 9949}]}),
        ] {
            let error = schema(&together.to_string()).err().unwrap();
            assert!(error.contains("too many states"), "{error}");
        }
        let crossed = "start: A\nA: /x|a(a{9973})*b/ & /x|a(a{9967})*c/";
        let error = vocabulary().compile(Kind::Lark, crossed).err().unwrap();
        assert!(error.contains("too many states"), "{error}");
    }

    #[test]
    fn long_chains_have_room_on_the_stack() {
        let rules: String = (0..10_000).map(|place| format!("r{place}: r{}\n", place + 1)).collect();
        let chain = format!("start: r0\n{rules}r10000: \"a\"");
        assert!(matches(&vocabulary().compile(Kind::Lark, &chain).unwrap(), "a"));
        let long = format!("start: \"{}\"", "a".repeat(MOST_BYTES_OF_LARK));
        assert!(vocabulary().compile(Kind::Lark, &long).err().unwrap().contains("bytes are not covered"));
        let long = json!(["a".repeat(MOST_BYTES)]).to_string();
        assert!(vocabulary().compile(Kind::Choice, &long).err().unwrap().contains("bytes are not covered"));
    }

    #[test]
    fn a_draft_is_known_or_refused() {
        let of = |draft: Value| schema(&json!({"$schema": draft, "type": "null"}).to_string());
        for draft in
            ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
        {
            assert!(of(json!(draft)).is_ok(), "{draft}");
        }
        for draft in [json!("nope"), json!(7)] {
            assert!(of(draft).err().unwrap().contains("`$schema`"));
        }
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
        let mut place = Place { matcher, vocabulary, work_left: None };
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
        let mut place = Place { matcher, vocabulary: vocabulary.clone(), work_left: None };
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
        let mut place = Place { matcher, vocabulary, work_left: None };
        let mut mask = [0];
        place.mask(&mut mask, true).unwrap();
        assert_eq!(mask[0], 0b010);
        place.mask(&mut mask, false).unwrap();
        assert_eq!(mask[0], 0b111);
    }
}
