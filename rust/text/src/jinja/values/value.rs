// SPDX-License-Identifier: Apache-2.0
//! Values as Python has them. Templates cannot change a value, only what a name or a namespace holds, so values are
//! shared; what has state (namespaces, macros, loops) is an index into the renderer, and no cycle can arise.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::jinja::error::{fail, reserve, spend, Error, Result};

// Dropping and comparing recurse; no conversation nests this deep.
const MAX_NESTING: u32 = 200;
// The keys of so few pairs are compared one by one.
const FEW_PAIRS: usize = 8;

#[derive(Clone)]
pub struct Text {
    pub text: Rc<str>,
    /// markupsafe's Markup: text that counts as escaped.
    pub markup: bool,
}

pub struct Items {
    pub values: Vec<Value>,
    /// Field names of a named tuple.
    pub names: &'static [&'static str],
    depth: u32,
}

#[derive(Clone, Copy)]
pub struct Range {
    pub start: i128,
    /// As it was written; the last number is told by `size`.
    pub stop: i128,
    pub step: i128,
    pub size: i128,
}

impl Range {
    pub fn get(&self, index: i128) -> i128 {
        self.start + index * self.step
    }

    pub fn position(&self, wanted: i128) -> Option<i128> {
        let offset = wanted.checked_sub(self.start)?;
        let index = offset / self.step;
        (offset % self.step == 0 && index >= 0 && index < self.size).then_some(index)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum View {
    Keys,
    Values,
    Pairs,
}

/// What an iterator has still to give, and the error it then ends with.
pub struct Stream {
    pub rest: std::vec::IntoIter<Value>,
    pub end: Option<Error>,
    depth: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Object {
    Namespace,
    Macro,
    Loop,
    Cycler,
    Joiner,
}

pub struct Method {
    pub receiver: Value,
    pub name: Rc<str>,
}

#[derive(Clone)]
pub enum Value {
    /// With the words for its use.
    Undefined(Rc<str>),
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Text),
    List(Rc<Items>),
    Tuple(Rc<Items>),
    Dict(Rc<Dict>),
    Range(Range),
    View(View, Rc<Dict>),
    Iterator(Rc<RefCell<Stream>>),
    Object(Object, usize),
    Function(&'static str),
    Method(Rc<Method>),
}

/// What makes two dictionary keys the same: 1, 1.0 and true are.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Key {
    Undefined,
    None,
    Int(i128),
    Float(u64),
    Str(Rc<str>),
    Tuple(Vec<Key>),
    Range(i128, i128, i128),
    Object(Object, usize),
    Function(&'static str),
}

#[derive(Default)]
pub struct Dict {
    pairs: Vec<(Value, Value)>,
    /// Empty as long as the pairs are few.
    places: HashMap<Key, usize, ahash::RandomState>,
    depth: u32,
}

fn deeper(depth: u32) -> Result<u32> {
    if depth >= MAX_NESTING {
        return fail("a value is nested too deeply");
    }
    Ok(depth + 1)
}

impl Dict {
    pub fn insert(&mut self, key: Value, value: Value) -> Result<()> {
        self.depth = self.depth.max(deeper(key.depth().max(value.depth()))?);
        let name = key.key()?;
        match self.place(&name) {
            Some(index) => self.pairs[index].1 = value,
            None => {
                self.pairs.push((key, value));
                self.remember(name)?;
            }
        }
        Ok(())
    }

    fn remember(&mut self, last: Key) -> Result<()> {
        if self.pairs.len() == FEW_PAIRS + 1 {
            for (index, (key, _)) in self.pairs.iter().enumerate() {
                self.places.insert(key.key()?, index);
            }
        } else if self.pairs.len() > FEW_PAIRS {
            self.places.insert(last, self.pairs.len() - 1);
        }
        Ok(())
    }

    fn place(&self, key: &Key) -> Option<usize> {
        if self.pairs.len() > FEW_PAIRS {
            return self.places.get(key).copied();
        }
        self.pairs.iter().position(|(known, _)| match (known, key) {
            (Value::Str(known), Key::Str(text)) => known.text == *text,
            (Value::Str(_), _) | (_, Key::Str(_)) => false,
            _ => known.key().is_ok_and(|known| known == *key),
        })
    }

    pub fn get(&self, key: &Key) -> Option<&Value> {
        self.place(key).map(|index| &self.pairs[index].1)
    }

    pub fn get_text(&self, key: &str) -> Option<&Value> {
        if self.pairs.len() > FEW_PAIRS {
            return self.get(&Key::Str(key.into()));
        }
        self.pairs.iter().find(|(known, _)| known.as_str() == Some(key)).map(|(_, value)| value)
    }

    pub fn pairs(&self) -> &[(Value, Value)] {
        &self.pairs
    }

    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Str(Text { text: text.into(), markup: false })
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Str(Text { text: text.into(), markup: false })
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Value {
        Value::Int(value as i128)
    }
}

fn items(values: Vec<Value>, names: &'static [&'static str]) -> Result<Rc<Items>> {
    let depth = deeper(values.iter().map(Value::depth).max().unwrap_or(0))?;
    Ok(Rc::new(Items { values, names, depth }))
}

impl Value {
    pub fn list(values: Vec<Value>) -> Result<Value> {
        Ok(Value::List(items(values, &[])?))
    }

    pub fn tuple(values: Vec<Value>) -> Result<Value> {
        Ok(Value::Tuple(items(values, &[])?))
    }

    pub fn named_tuple(values: Vec<Value>, names: &'static [&'static str]) -> Result<Value> {
        Ok(Value::Tuple(items(values, names)?))
    }

    pub fn dict(dict: Dict) -> Value {
        Value::Dict(Rc::new(dict))
    }

    pub fn markup(text: impl Into<Rc<str>>) -> Value {
        Value::Str(Text { text: text.into(), markup: true })
    }

    pub fn letter(letter: char, markup: bool) -> Value {
        let mut bytes = [0; 4];
        Value::Str(Text { text: (&*letter.encode_utf8(&mut bytes)).into(), markup })
    }

    pub fn iterator(values: Vec<Value>, end: Option<Error>) -> Result<Value> {
        let depth = deeper(values.iter().map(Value::depth).max().unwrap_or(0))?;
        Ok(Value::Iterator(Rc::new(RefCell::new(Stream { rest: values.into_iter(), end, depth }))))
    }

    pub fn undefined(message: impl Into<Rc<str>>) -> Value {
        Value::Undefined(message.into())
    }

    pub fn method(receiver: Value, name: &str) -> Value {
        Value::Method(Rc::new(Method { receiver, name: name.into() }))
    }

    fn depth(&self) -> u32 {
        match self {
            Value::List(items) | Value::Tuple(items) => items.depth,
            Value::Dict(dict) | Value::View(_, dict) => dict.depth,
            Value::Iterator(stream) => stream.borrow().depth,
            Value::Method(method) => method.receiver.depth(),
            _ => 0,
        }
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Value::Undefined(_))
    }

    pub fn is_true(&self) -> bool {
        match self {
            Value::Undefined(_) | Value::None => false,
            Value::Bool(value) => *value,
            Value::Int(value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Str(text) => !text.text.is_empty(),
            Value::List(items) | Value::Tuple(items) => !items.values.is_empty(),
            Value::Dict(dict) | Value::View(_, dict) => !dict.is_empty(),
            Value::Range(range) => range.size > 0,
            _ => true,
        }
    }

    /// Python's name of the type, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Undefined(_) => "Undefined",
            Value::None => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Str(text) if text.markup => "Markup",
            Value::Str(_) => "str",
            Value::List(_) => "list",
            Value::Tuple(_) => "tuple",
            Value::Dict(_) => "dict",
            Value::Range(_) => "range",
            Value::View(View::Keys, _) => "dict_keys",
            Value::View(View::Values, _) => "dict_values",
            Value::View(View::Pairs, _) => "dict_items",
            Value::Iterator(_) => "generator",
            Value::Object(Object::Namespace, _) => "Namespace",
            Value::Object(Object::Macro, _) => "Macro",
            Value::Object(Object::Loop, _) => "LoopContext",
            Value::Object(Object::Cycler, _) => "Cycler",
            Value::Object(Object::Joiner, _) => "Joiner",
            Value::Function(_) => "function",
            Value::Method(_) => "builtin_function_or_method",
        }
    }

    /// The whole number that Python would index with: ints and bools.
    pub fn as_index(&self) -> Option<i128> {
        match self {
            Value::Int(value) => Some(*value),
            Value::Bool(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(&text.text),
            _ => None,
        }
    }

    pub fn key(&self) -> Result<Key> {
        Ok(match self {
            Value::Undefined(_) => Key::Undefined,
            Value::None => Key::None,
            Value::Bool(value) => Key::Int(i128::from(*value)),
            Value::Int(value) => Key::Int(*value),
            Value::Float(value) if value.is_nan() => return fail("nan as a key is not supported"),
            Value::Float(value) if value.fract() == 0.0 && value.abs() < 1e38 => Key::Int(*value as i128),
            Value::Float(value) => Key::Float(value.to_bits()),
            Value::Str(text) => Key::Str(text.text.clone()),
            Value::Tuple(items) => {
                spend(items.values.len())?;
                Key::Tuple(items.values.iter().map(Value::key).collect::<Result<_>>()?)
            }
            Value::Range(range) => Key::Range(range.start, range.step, range.size),
            Value::Object(kind, index) => Key::Object(*kind, *index),
            Value::Function(name) => Key::Function(name),
            _ => return fail(format!("unhashable type: '{}'", self.type_name())),
        })
    }

    /// len(), where Python has it.
    pub fn length(&self) -> Option<usize> {
        Some(match self {
            Value::Undefined(_) => 0,
            Value::Str(text) => text.text.chars().count(),
            Value::List(items) | Value::Tuple(items) => items.values.len(),
            Value::Dict(dict) | Value::View(_, dict) => dict.len(),
            Value::Range(range) => range.size as usize,
            _ => return None,
        })
    }

    /// list(); takes all that an iterator still has.
    pub fn items(&self) -> Result<Vec<Value>> {
        let count = match self {
            Value::Str(text) => text.text.len(),
            _ => self.length().unwrap_or(0),
        };
        spend(count)?;
        reserve(count * 2 * std::mem::size_of::<Value>())?;
        Ok(match self {
            Value::Undefined(_) => Vec::new(),
            Value::Str(text) => {
                let mut letters = Vec::new();
                for letter in text.text.chars() {
                    spend(1)?;
                    letters.push(Value::letter(letter, false));
                }
                letters
            }
            Value::List(items) | Value::Tuple(items) => items.values.clone(),
            Value::Dict(dict) | Value::View(View::Keys, dict) => {
                dict.pairs.iter().map(|(key, _)| key.clone()).collect()
            }
            Value::View(View::Values, dict) => dict.pairs.iter().map(|(_, value)| value.clone()).collect(),
            Value::View(View::Pairs, dict) => dict
                .pairs
                .iter()
                .map(|(key, value)| Value::tuple(vec![key.clone(), value.clone()]))
                .collect::<Result<_>>()?,
            Value::Range(range) => (0..range.size).map(|index| Value::Int(range.get(index))).collect(),
            Value::Iterator(stream) => {
                let mut stream = stream.borrow_mut();
                let rest: Vec<Value> = stream.rest.by_ref().collect();
                if let Some(error) = stream.end.take() {
                    return Err(error);
                }
                rest
            }
            _ => return fail(format!("'{}' object is not iterable", self.type_name())),
        })
    }

    pub fn is_iterable(&self) -> bool {
        matches!(
            self,
            Value::Undefined(_)
                | Value::Str(_)
                | Value::List(_)
                | Value::Tuple(_)
                | Value::Dict(_)
                | Value::View(..)
                | Value::Range(_)
                | Value::Iterator(_)
                | Value::Object(Object::Loop, _)
        )
    }

    /// The error that any operation on an undefined value ends with.
    pub fn refuse_undefined(&self) -> Result<()> {
        match self {
            Value::Undefined(message) => fail(message.as_ref()),
            _ => Ok(()),
        }
    }
}
