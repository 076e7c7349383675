// SPDX-License-Identifier: Apache-2.0
//! tokenizer.json, read once: what it must satisfy is checked, because the library allocates by the largest id and drops
//! in silence what a vocabulary lacks; then the tokenizer is built from what was read, without the copies that the
//! library's own reader makes of it.

use std::collections::HashMap;

use ahash::AHashMap;
use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::Value;
use tokenizers::models::bpe::BPE;
use tokenizers::{
    AddedToken, DecoderWrapper, ModelWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper,
    Tokenizer,
};

use crate::missing_bytes::MissingBytes;
use crate::tokenizer_json::{File, Merge, Merges, Model, Vocabulary};

const LARGEST_ID: u64 = (1 << 24) - 1;
/// Gaps are legal (padded vocabularies); memory is allocated by the largest id all the same.
const LARGEST_GAP: usize = 1 << 16;

/// Why the file is refused; `path` is the place in its JSON, or empty.
pub struct Refusal {
    pub path: String,
    pub message: String,
}

impl Refusal {
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Refusal {
        Refusal { path: path.into(), message: message.into() }
    }
}

fn refuse<T>(path: impl Into<String>, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(path, message))
}

#[derive(Deserialize)]
pub struct DeclaredToken {
    #[serde(flatten)]
    pub token: AddedToken,
    pub id: Option<u32>,
}

/// Adds all tokens in one call, as transformers does: each call rebuilds the search for all of them.
pub fn add_tokens(tokenizer: &mut Tokenizer, declared: &[DeclaredToken], file: &str) -> Result<(), Refusal> {
    let tokens: Vec<AddedToken> = declared.iter().map(|declared| declared.token.clone()).collect();
    tokenizer.add_tokens(&tokens);
    for DeclaredToken { token, id } in declared {
        let got = tokenizer.token_to_id(&token.content);
        if id.is_some() && *id != got {
            let got = got.map_or("nothing".to_string(), |id| id.to_string());
            let id = id.unwrap_or_default();
            let text =
                format!("{file} declares `{}` as id {id}, but the tokenizer makes it {got}", token.content);
            return refuse("", text);
        }
    }
    Ok(())
}

/// Ids by token, checked.
struct Tokens<'a> {
    ids: HashMap<&'a str, u32, ahash::RandomState>,
    by_id: HashMap<u32, &'a str, ahash::RandomState>,
}

impl<'a> Tokens<'a> {
    fn with_capacity(count: usize) -> Tokens<'a> {
        Tokens {
            ids: HashMap::with_capacity_and_hasher(count, Default::default()),
            by_id: HashMap::with_capacity_and_hasher(count, Default::default()),
        }
    }

    fn largest_id(&self) -> u32 {
        self.by_id.keys().copied().max().unwrap_or_default()
    }

    fn contains(&self, token: &str) -> bool {
        self.ids.contains_key(token)
    }

    fn add(&mut self, token: &'a str, id: u32, path: impl Fn() -> String) -> Result<(), Refusal> {
        match self.by_id.insert(id, token) {
            Some(other) => refuse(path(), format!("id {id} is already that of `{other}`")),
            None => {
                self.ids.insert(token, id);
                Ok(())
            }
        }
    }
}

fn checked_id(value: &Value, path: impl Fn() -> String) -> Result<u32, Refusal> {
    // Fractions, negative numbers and what does not fit 64 bits are no u64.
    value.as_u64().filter(|id| *id <= LARGEST_ID).map(|id| id as u32).ok_or_else(|| {
        let shown: String = value.to_string().chars().take(40).collect();
        Refusal::new(path(), format!("wanted an id from 0 to {LARGEST_ID}, found {shown}"))
    })
}

fn read_vocabulary<'a>(model: &'a Model<'a>) -> Result<Tokens<'a>, Refusal> {
    let path = |token: &str| format!("model.vocab[`{token}`]");
    let Some(Vocabulary::Ids(entries)) = &model.vocab else {
        return refuse("model.vocab", "wanted an object of token: id");
    };
    if entries.is_empty() {
        return refuse("model.vocab", "the vocabulary is empty");
    }
    let mut tokens = Tokens::with_capacity(entries.len());
    for (token, id) in entries {
        if tokens.contains(token) {
            return refuse(path(token), "the token is given twice");
        }
        tokens.add(token, checked_id(id, || path(token))?, || path(token))?;
    }
    Ok(tokens)
}

fn read_scores<'a>(model: &'a Model<'a>) -> Result<Tokens<'a>, Refusal> {
    let entries = match &model.vocab {
        Some(Vocabulary::Scores(entries)) if !entries.is_empty() => entries,
        _ => return refuse("model.vocab", "wanted a list of [token, score]"),
    };
    if entries.len() as u64 > LARGEST_ID {
        return refuse("model.vocab", "too many tokens");
    }
    let mut tokens = Tokens::with_capacity(entries.len());
    for (id, entry) in entries.iter().enumerate() {
        match entry.as_array().map(Vec::as_slice) {
            Some([Value::String(token), Value::Number(_)]) => {
                tokens.ids.entry(token).or_insert(id as u32);
                tokens.by_id.insert(id as u32, token);
            }
            _ => return refuse(format!("model.vocab[{id}]"), "wanted [token, score]"),
        }
    }
    Ok(tokens)
}

fn read_added<'a>(added: &'a [Value], tokens: &mut Tokens<'a>) -> Result<(), Refusal> {
    for (index, token) in added.iter().enumerate() {
        let path = |key: &str| format!("added_tokens[{index}]{key}");
        let (Some(id), Some(content)) = (token.get("id"), token.get("content")) else {
            return refuse(path(""), "wanted an object with id and content");
        };
        let Some(content) = content.as_str().filter(|content| !content.is_empty()) else {
            return refuse(path(".content"), "wanted a text that is not empty");
        };
        let id = checked_id(id, || path(".id"))?;
        match tokens.ids.get(content) {
            Some(known) if *known != id => {
                let text = format!("`{content}` has id {known} in the vocabulary, but {id} here");
                return refuse(path(".id"), text);
            }
            Some(_) => {}
            None => tokens.add(content, id, || path(".id"))?,
        }
    }
    Ok(())
}

/// The tokens of the vocabulary and of `added_tokens`, dense enough to be allocated by the largest.
fn read_tokens<'a>(model: &'a Model<'a>, added: &'a [Value]) -> Result<Tokens<'a>, Refusal> {
    let kind = match model.kind.as_ref().and_then(Value::as_str) {
        Some(kind @ ("BPE" | "Unigram" | "WordPiece" | "WordLevel")) => kind,
        _ => return refuse("model.type", "wanted BPE, Unigram, WordPiece or WordLevel"),
    };
    let mut tokens = if kind == "Unigram" { read_scores(model)? } else { read_vocabulary(model)? };
    read_added(added, &mut tokens)?;
    check_density(&tokens)?;
    check_unknown_token(kind, model, &tokens)?;
    Ok(tokens)
}

fn check_density(tokens: &Tokens) -> Result<(), Refusal> {
    let largest = tokens.largest_id() as usize;
    let count = tokens.by_id.len();
    if largest < 2 * count + LARGEST_GAP {
        return Ok(());
    }
    refuse("model.vocab", format!("the largest id is {largest}, but there are only {count} tokens"))
}

fn check_unknown_token(kind: &str, model: &Model, tokens: &Tokens) -> Result<(), Refusal> {
    if kind == "Unigram" {
        let Some(id) = &model.unk_id else {
            return refuse("model.unk_id", "wanted the id of the token for unknown letters");
        };
        let id = checked_id(id, || "model.unk_id".into())?;
        let count = match &model.vocab {
            Some(Vocabulary::Scores(scores)) => scores.len(),
            _ => 0,
        };
        if id as usize >= count {
            return refuse("model.unk_id", format!("id {id} is not in the vocabulary"));
        }
        return Ok(());
    }
    match &model.unk_token {
        None if kind == "BPE" => Ok(()),
        None => refuse("model.unk_token", "wanted the token for unknown words"),
        Some(Value::String(token)) if tokens.contains(token) => Ok(()),
        Some(Value::String(token)) => {
            refuse("model.unk_token", format!("`{token}` is not in the vocabulary"))
        }
        Some(_) => refuse("model.unk_token", "wanted a token or null"),
    }
}

fn check_merges(model: &Model, tokens: &Tokens) -> Result<(), Refusal> {
    let Some(Merges(merges)) = &model.merges else { return refuse("model.merges", "wanted a list") };
    if merges.len() as u64 > LARGEST_ID {
        return refuse("model.merges", "too many merges");
    }
    let prefix = model.continuing_subword_prefix.as_deref().unwrap_or_default();
    let mut merged = String::new();
    for (index, Merge(merge)) in merges.iter().enumerate() {
        let fail = |message: String| refuse(format!("model.merges[{index}]"), message);
        let Some((left, right)) = merge else {
            return fail("wanted two tokens, as a list or with one space between".into());
        };
        for part in [left, right] {
            if !tokens.contains(part) {
                return fail(format!("`{part}` is not in the vocabulary"));
            }
        }
        let Some(rest) = right.strip_prefix(prefix) else {
            return fail(format!("`{right}` lacks the prefix `{prefix}`"));
        };
        merged.clear();
        merged.push_str(left);
        merged.push_str(rest);
        if !tokens.contains(&merged) {
            return fail(format!("the merged token `{merged}` is not in the vocabulary"));
        }
    }
    Ok(())
}

fn uses_bytes(component: &Value) -> bool {
    component.get("type").is_some_and(|kind| kind == "ByteLevel")
        || ["pretokenizers", "normalizers"].iter().any(|key| {
            let parts = component.get(key).and_then(Value::as_array);
            parts.is_some_and(|parts| parts.iter().any(uses_bytes))
        })
}

fn is_byte_level(file: &File) -> bool {
    [&file.pre_tokenizer, &file.normalizer].iter().any(|part| part.as_ref().is_some_and(uses_bytes))
}

/// Without unk_token a BPE model drops what it cannot spell, in silence. Texts that need a missing byte are refused; a
/// vocabulary that lacks whole letters is.
fn find_missing_bytes(file: &File, model: &Model, tokens: &Tokens) -> Result<Option<MissingBytes>, Refusal> {
    if model.kind.as_ref().is_some_and(|kind| kind != "BPE") || model.unk_token.is_some() {
        return Ok(None);
    }
    if is_byte_level(file) {
        return Ok(MissingBytes::of(|letter| tokens.contains(letter)));
    }
    if model.byte_fallback != Some(true) {
        let text = "neither byte-level nor byte_fallback, so a token for unknown letters is needed";
        return refuse("model.unk_token", text);
    }
    let missing = (0..=255).map(|byte| format!("<0x{byte:02X}>")).find(|name| !tokens.contains(name));
    missing.map_or(Ok(None), |name| {
        let text = format!("byte_fallback, but {name} is missing and unk_token is not set");
        refuse("model.vocab", text)
    })
}

fn build_model(json: &[u8], model: &Model, tokens: &Tokens) -> Result<ModelWrapper, Refusal> {
    if model.kind.as_ref().is_some_and(|kind| kind != "BPE") {
        return read_other_model(json).map_err(|error| Refusal::new("model", error.to_string()));
    }
    // The library looks every merge up as well, and then says less of what is wrong; but it cuts the prefix unasked.
    let cuts = model.continuing_subword_prefix.as_ref().is_some_and(|prefix| !prefix.is_empty());
    let whole = |merges: &Merges| merges.0.iter().all(|merge| merge.0.is_some());
    if cuts || !model.merges.as_ref().is_some_and(whole) {
        check_merges(model, tokens)?;
    }
    build_bpe(model, tokens).map(ModelWrapper::from).or_else(|error| {
        check_merges(model, tokens)?;
        refuse("model", error.to_string())
    })
}

fn build_bpe(model: &Model, tokens: &Tokens) -> tokenizers::Result<BPE> {
    let vocab = match &model.vocab {
        Some(Vocabulary::Ids(entries)) => entries.as_slice(),
        _ => &[],
    };
    let vocab: AHashMap<String, u32> =
        vocab.iter().map(|(token, _)| (token.to_string(), tokens.ids[token.as_ref()])).collect();
    let merges = model.merges.iter().flat_map(|merges| &merges.0).filter_map(|merge| merge.0.as_ref());
    let merges = merges.map(|(left, right)| (left.to_string(), right.to_string())).collect();
    let mut builder = BPE::builder()
        .vocab_and_merges(vocab, merges)
        .fuse_unk(model.fuse_unk.unwrap_or_default())
        .byte_fallback(model.byte_fallback.unwrap_or_default())
        .ignore_merges(model.ignore_merges.unwrap_or_default());
    if let Some(Value::String(token)) = &model.unk_token {
        builder = builder.unk_token(token.clone());
    }
    if let Some(prefix) = &model.continuing_subword_prefix {
        builder = builder.continuing_subword_prefix(prefix.clone());
    }
    if let Some(suffix) = &model.end_of_word_suffix {
        builder = builder.end_of_word_suffix(suffix.clone());
    }
    if let Some(dropout) = model.dropout {
        builder = builder.dropout(dropout);
    }
    builder.build()
}

/// The models that are not BPE are small or rare: the library reads them.
fn read_other_model(json: &[u8]) -> serde_json::Result<ModelWrapper> {
    #[derive(Deserialize)]
    struct OnlyModel {
        model: ModelWrapper,
    }
    Ok(serde_json::from_slice::<OnlyModel>(json)?.model)
}

fn component<T: DeserializeOwned>(value: Option<Value>, path: &str) -> Result<Option<T>, Refusal> {
    let value = value.unwrap_or_default();
    serde_json::from_value(value).map_err(|error| Refusal::new(path, error.to_string()))
}

pub struct Loaded {
    pub tokenizer: Tokenizer,
    pub largest_id: u32,
    pub missing_bytes: Option<MissingBytes>,
}

pub fn read(json: &[u8]) -> Result<Loaded, Refusal> {
    if json.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|byte| *byte != b'{') {
        return refuse("$", "wanted a JSON object");
    }
    let file: File = serde_json::from_slice(json)
        .map_err(|error| Refusal::new("", format!("not a tokenizer's JSON: {error}")))?;
    if let Some(version) = file.version.as_ref().filter(|version| *version != "1.0") {
        return refuse("version", format!("wanted 1.0, found `{version}`"));
    }
    let Some(model) = &file.model else { return refuse("model", "wanted an object") };
    let tokens = read_tokens(model, file.added_tokens.as_deref().unwrap_or_default())?;
    let missing_bytes = find_missing_bytes(&file, model, &tokens)?;
    let mut tokenizer = Tokenizer::new(build_model(json, model, &tokens)?);
    let largest_id = tokens.largest_id();
    tokenizer.with_normalizer(component::<NormalizerWrapper>(file.normalizer, "normalizer")?);
    tokenizer.with_pre_tokenizer(component::<PreTokenizerWrapper>(file.pre_tokenizer, "pre_tokenizer")?);
    tokenizer.with_post_processor(component::<PostProcessorWrapper>(file.post_processor, "post_processor")?);
    tokenizer.with_decoder(component::<DecoderWrapper>(file.decoder, "decoder")?);
    let added: Option<Vec<DeclaredToken>> = component(file.added_tokens.map(Value::Array), "added_tokens")?;
    add_tokens(&mut tokenizer, &added.unwrap_or_default(), "added_tokens of tokenizer.json")?;
    Ok(Loaded { tokenizer, largest_id, missing_bytes })
}
