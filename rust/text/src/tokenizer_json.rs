// SPDX-License-Identifier: Apache-2.0
//! tokenizer.json as it is written, borrowed from its text. What is of another type than wanted in a large list is read as
//! nothing, so that whoever checks can name its place.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::Deserialize;
use serde_json::Value;

/// A text of the file, or nothing where it has something else.
pub struct Text<'a>(pub Option<Cow<'a, str>>);

pub struct Merge<'a>(pub Option<(Cow<'a, str>, Cow<'a, str>)>);

pub struct Merges<'a>(pub Vec<Merge<'a>>);

pub enum Vocabulary<'a> {
    Ids(Vec<(Cow<'a, str>, Value)>),
    Scores(Vec<Value>),
}

/// The values that a reader takes for "something else than wanted".
macro_rules! others {
    ($other:expr; $($method:ident: $type:ty),*) => {
        $(fn $method<E>(self, _: $type) -> Result<Self::Value, E> { Ok($other) })*
        fn visit_unit<E>(self) -> Result<Self::Value, E> { Ok($other) }
    };
}

fn drain_map<'a, A: MapAccess<'a>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

fn drain_list<'a, A: SeqAccess<'a>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'a> Visitor<'a> for Reader {
            type Value = Text<'a>;
            fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
                out.write_str("a text")
            }
            fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Text<'a>, E> {
                Ok(Text(Some(Cow::Borrowed(text))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Text<'a>, E> {
                Ok(Text(Some(Cow::Owned(text.to_string()))))
            }
            others!(Text(None); visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);
            fn visit_seq<A: SeqAccess<'a>>(self, list: A) -> Result<Text<'a>, A::Error> {
                drain_list(list).map(|()| Text(None))
            }
            fn visit_map<A: MapAccess<'a>>(self, map: A) -> Result<Text<'a>, A::Error> {
                drain_map(map).map(|()| Text(None))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// "left right" with one space, cut there.
fn cut(text: &str) -> Option<(&str, &str)> {
    text.split_once(' ').filter(|(_, right)| !right.contains(' '))
}

impl<'de: 'a, 'a> Deserialize<'de> for Merge<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'a> Visitor<'a> for Reader {
            type Value = Merge<'a>;
            fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
                out.write_str("two tokens")
            }
            fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Merge<'a>, E> {
                Ok(Merge(cut(text).map(|(left, right)| (left.into(), right.into()))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Merge<'a>, E> {
                let owned = |part: &str| Cow::Owned(part.to_string());
                Ok(Merge(cut(text).map(|(left, right)| (owned(left), owned(right)))))
            }
            others!(Merge(None); visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);
            fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Merge<'a>, A::Error> {
                let mut part = || Ok(list.next_element::<Text>()?.and_then(|text| text.0));
                let parts = (part()?, part()?);
                let more = list.next_element::<IgnoredAny>()?.is_some();
                drain_list(list)?;
                Ok(Merge(match parts {
                    (Some(left), Some(right)) if !more => Some((left, right)),
                    _ => None,
                }))
            }
            fn visit_map<A: MapAccess<'a>>(self, map: A) -> Result<Merge<'a>, A::Error> {
                drain_map(map).map(|()| Merge(None))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Merges<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'a> Visitor<'a> for Reader {
            type Value = Merges<'a>;
            fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
                out.write_str("a list as model.merges")
            }
            fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Merges<'a>, A::Error> {
                let mut merges = Vec::new();
                while let Some(merge) = list.next_element()? {
                    merges.push(merge);
                }
                Ok(Merges(merges))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Vocabulary<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'a> Visitor<'a> for Reader {
            type Value = Vocabulary<'a>;
            fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
                out.write_str("an object of ids or a list of scores as model.vocab")
            }
            fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Vocabulary<'a>, A::Error> {
                let mut ids = Vec::new();
                while let Some((Text(token), id)) = map.next_entry::<Text, Value>()? {
                    ids.push((token.unwrap_or_default(), id));
                }
                Ok(Vocabulary::Ids(ids))
            }
            fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Vocabulary<'a>, A::Error> {
                let mut scores = Vec::new();
                while let Some(score) = list.next_element()? {
                    scores.push(score);
                }
                Ok(Vocabulary::Scores(scores))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

#[derive(Deserialize)]
pub struct Model<'a> {
    #[serde(rename = "type")]
    pub kind: Option<Value>,
    #[serde(borrow)]
    pub vocab: Option<Vocabulary<'a>>,
    #[serde(borrow)]
    pub merges: Option<Merges<'a>>,
    pub unk_token: Option<Value>,
    pub unk_id: Option<Value>,
    pub continuing_subword_prefix: Option<String>,
    pub end_of_word_suffix: Option<String>,
    pub byte_fallback: Option<bool>,
    pub fuse_unk: Option<bool>,
    pub ignore_merges: Option<bool>,
    pub dropout: Option<f32>,
}

#[derive(Deserialize)]
pub struct File<'a> {
    pub version: Option<String>,
    pub added_tokens: Option<Vec<Value>>,
    pub normalizer: Option<Value>,
    pub pre_tokenizer: Option<Value>,
    pub post_processor: Option<Value>,
    pub decoder: Option<Value>,
    #[serde(borrow)]
    pub model: Option<Model<'a>>,
}
