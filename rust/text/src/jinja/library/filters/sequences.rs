// SPDX-License-Identifier: Apache-2.0
//! Filters of lists, dicts and other iterables.

use std::cmp::Ordering;
use std::collections::HashSet;

use crate::jinja::error::{fail, reserve, spend, Error, Result};
use crate::jinja::interpreter::state::Renderer;
use crate::jinja::values::arguments::{index, Arguments};
use crate::jinja::values::operators::slice;
use crate::jinja::values::order::{compare, equal, sort_by};
use crate::jinja::values::value::{Value, View};

pub const NAMES: &[&str] = &[
    "attr",
    "batch",
    "dictsort",
    "first",
    "groupby",
    "items",
    "last",
    "list",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "reverse",
    "select",
    "selectattr",
    "slice",
    "sort",
    "unique",
];

fn folded(value: Value) -> Value {
    match value.as_str() {
        Some(text) => text.to_lowercase().into(),
        None => value,
    }
}

fn is_given(value: Option<Value>) -> Option<Value> {
    value.filter(|value| !matches!(value, Value::None))
}

/// What items are compared by: an attribute path, letters of both cases alike.
struct KeyOf {
    attribute: Option<Value>,
    case_sensitive: bool,
    default: Option<Value>,
}

impl KeyOf {
    fn new(attribute: Option<Value>, case_sensitive: Option<Value>) -> KeyOf {
        let case_sensitive = case_sensitive.is_some_and(|value| value.is_true());
        KeyOf { attribute: is_given(attribute), case_sensitive, default: None }
    }

    fn raw(&self, renderer: &mut Renderer, item: &Value) -> Result<Value> {
        match &self.attribute {
            Some(attribute) => renderer.attribute_path(item, attribute, self.default.as_ref()),
            None => Ok(item.clone()),
        }
    }

    fn get(&self, renderer: &mut Renderer, item: &Value) -> Result<Value> {
        let key = self.raw(renderer, item)?;
        Ok(if self.case_sensitive { key } else { folded(key) })
    }
}

fn sort(renderer: &mut Renderer, value: &Value, arguments: Arguments) -> Result<Value> {
    let [reverse, case_sensitive, attribute] =
        arguments.bind("sort", ["reverse", "case_sensitive", "attribute"], 0)?;
    let reverse = match reverse {
        None => false,
        Some(reverse) => index(&reverse, "sort")? != 0,
    };
    let attributes: Vec<Value> = match is_given(attribute) {
        Some(Value::Str(text)) => text.text.split(',').map(Value::from).collect(),
        other => other.into_iter().collect(),
    };
    let case_sensitive = case_sensitive.is_some_and(|value| value.is_true());
    let mut keyed = Vec::new();
    for item in value.items()? {
        let mut keys = Vec::new();
        if attributes.is_empty() {
            keys.push(item.clone());
        }
        for attribute in &attributes {
            keys.push(renderer.attribute_path(&item, attribute, None)?);
        }
        let keys = if case_sensitive { keys } else { keys.into_iter().map(folded).collect() };
        keyed.push((Value::list(keys)?, item));
    }
    sort_by(&mut keyed, |left, right| compare(&left.0, &right.0), reverse)?;
    Value::list(keyed.into_iter().map(|(_, item)| item).collect())
}

fn dict_sort(value: &Value, arguments: Arguments) -> Result<Value> {
    let [case_sensitive, by, reverse] = arguments.bind("dictsort", ["case_sensitive", "by", "reverse"], 0)?;
    let by = by.unwrap_or_else(|| "key".into());
    let by_key = match by.as_str() {
        Some("key") => true,
        Some("value") => false,
        _ => return fail("You can only sort by either \"key\" or \"value\""),
    };
    let reverse = match reverse {
        None => false,
        Some(reverse) => index(&reverse, "dictsort")? != 0,
    };
    let case_sensitive = case_sensitive.is_some_and(|value| value.is_true());
    let mut pairs = pairs_of(value)?;
    sort_by(
        &mut pairs,
        |left, right| {
            let side = |pair: &(Value, Value)| {
                let key = if by_key { pair.0.clone() } else { pair.1.clone() };
                if case_sensitive {
                    key
                } else {
                    folded(key)
                }
            };
            compare(&side(left), &side(right))
        },
        reverse,
    )?;
    Value::list(pairs.into_iter().map(|(key, value)| Value::tuple(vec![key, value])).collect::<Result<_>>()?)
}

fn pairs_of(value: &Value) -> Result<Vec<(Value, Value)>> {
    value.refuse_undefined()?;
    match value {
        Value::Dict(dict) => {
            spend(dict.len())?;
            Ok(dict.pairs().to_vec())
        }
        _ => fail(format!("'{}' object has no attribute 'items'", value.type_name())),
    }
}

/// The error an iterator ends with is kept for the one who gets so far.
fn partly(value: &Value) -> Result<(Vec<Value>, Option<Error>)> {
    match value {
        Value::Iterator(stream) => {
            let mut stream = stream.borrow_mut();
            Ok((stream.rest.by_ref().collect(), stream.end.take()))
        }
        _ => Ok((value.items()?, None)),
    }
}

/// An iterator over what `step` makes of each item, up to its first error.
fn lazily(value: &Value, mut step: impl FnMut(Value) -> Result<Option<Value>>) -> Result<Value> {
    let (items, mut end) = match partly(value) {
        Ok(found) => found,
        Err(error) => (Vec::new(), Some(error)),
    };
    let mut out = Vec::new();
    for item in items {
        spend(1)?;
        match step(item) {
            Ok(found) => out.extend(found),
            Err(error) => {
                end = Some(error);
                break;
            }
        }
    }
    Value::iterator(out, end)
}

fn map(renderer: &mut Renderer, value: &Value, mut arguments: Arguments) -> Result<Value> {
    if !value.is_true() {
        return Value::iterator(Vec::new(), None);
    }
    let refuse = |message: &str| Value::iterator(Vec::new(), Some(Error::new(message)));
    if arguments.positional.is_empty() {
        let Some(attribute) = arguments.take_named("attribute") else {
            return refuse("map requires a filter argument");
        };
        let default = is_given(arguments.take_named("default"));
        if let Some((name, _)) = arguments.named.first() {
            return refuse(&format!("Unexpected keyword argument '{name}'"));
        }
        return lazily(value, |item| match attribute {
            Value::None => Ok(Some(item)),
            _ => renderer.attribute_path(&item, &attribute, default.as_ref()).map(Some),
        });
    }
    let name = arguments.positional.remove(0);
    let Some(name) = name.as_str() else { return refuse("map: the name of a filter is a text") };
    lazily(value, |item| renderer.filter(name, item, arguments.clone()).map(Some))
}

fn select(
    renderer: &mut Renderer,
    value: &Value,
    mut arguments: Arguments,
    keeps: bool,
    by_attribute: bool,
) -> Result<Value> {
    if !value.is_true() {
        return Value::iterator(Vec::new(), None);
    }
    let attribute = match by_attribute {
        true if arguments.positional.is_empty() => {
            return Value::iterator(Vec::new(), Some(Error::new("Missing parameter for attribute name")))
        }
        true => Some(arguments.positional.remove(0)),
        false => None,
    };
    let name = if arguments.positional.is_empty() { None } else { Some(arguments.positional.remove(0)) };
    lazily(value, |item| {
        let tested = match &attribute {
            None | Some(Value::None) => item.clone(),
            Some(attribute) => renderer.attribute_path(&item, attribute, None)?,
        };
        let holds = match &name {
            None => tested.is_true(),
            Some(name) => match name.as_str() {
                Some(name) => renderer.test(name, &tested, arguments.clone())?,
                None => return fail("the name of a test is a text"),
            },
        };
        Ok((holds == keeps).then_some(item))
    })
}

fn batch(value: &Value, arguments: Arguments) -> Result<Value> {
    let [count, fill] = arguments.bind("batch", ["linecount", "fill_with"], 1)?;
    let count = count.unwrap_or(Value::None);
    let items = value.items()?;
    let mut batches: Vec<Vec<Value>> = Vec::new();
    let mut current: Vec<Value> = Vec::new();
    for item in items {
        if equal(&current.len().into(), &count)? {
            batches.push(std::mem::take(&mut current));
        }
        current.push(item);
    }
    if !current.is_empty() {
        if let Some(fill) = is_given(fill) {
            let wanted = usize::try_from(index(&count, "batch")?.max(0)).unwrap_or(usize::MAX);
            let missing = wanted.saturating_sub(current.len());
            spend(missing)?;
            reserve(missing.saturating_mul(std::mem::size_of::<Value>()))?;
            current.extend(std::iter::repeat_n(fill, missing));
        }
        batches.push(current);
    }
    Value::iterator(batches.into_iter().map(Value::list).collect::<Result<_>>()?, None)
}

fn slices(value: &Value, arguments: Arguments) -> Result<Value> {
    let [count, fill] = arguments.bind("slice", ["slices", "fill_with"], 1)?;
    let count = index(&count.unwrap_or(Value::None), "slice")?;
    let items = value.items()?;
    if count == 0 {
        return Value::iterator(Vec::new(), Some(Error::new("integer division or modulo by zero")));
    }
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    spend(count)?;
    reserve(count.saturating_mul(64))?;
    let fill = is_given(fill);
    let mut out = Vec::new();
    let mut begin = 0;
    for number in 0..count {
        let extra = number < items.len() % count;
        let end = begin + items.len() / count + usize::from(extra);
        let mut part = items[begin..end].to_vec();
        if let (Some(fill), false) = (&fill, extra) {
            part.push(fill.clone());
        }
        out.push(Value::list(part)?);
        begin = end;
    }
    Value::iterator(out, None)
}

fn unique(renderer: &mut Renderer, value: &Value, arguments: Arguments) -> Result<Value> {
    let [case_sensitive, attribute] = arguments.bind("unique", ["case_sensitive", "attribute"], 0)?;
    let key_of = KeyOf::new(attribute, case_sensitive);
    let mut seen = HashSet::new();
    lazily(value, |item| Ok(seen.insert(key_of.get(renderer, &item)?.key()?).then_some(item)))
}

fn extreme(renderer: &mut Renderer, name: &str, value: &Value, arguments: Arguments) -> Result<Value> {
    let [case_sensitive, attribute] = arguments.bind(name, ["case_sensitive", "attribute"], 0)?;
    let key_of = KeyOf::new(attribute, case_sensitive);
    let mut best: Option<(Value, Value)> = None;
    for item in value.items()? {
        let key = key_of.get(renderer, &item)?;
        let better = match &best {
            None => true,
            Some((top, _)) => {
                let order = compare(&key, top)?;
                order == Some(if name == "min" { Ordering::Less } else { Ordering::Greater })
            }
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(match best {
        Some((_, item)) => item,
        None => Value::undefined("No aggregated item, sequence was empty."),
    })
}

fn group_by(renderer: &mut Renderer, value: &Value, arguments: Arguments) -> Result<Value> {
    let [attribute, default, case_sensitive] =
        arguments.bind("groupby", ["attribute", "default", "case_sensitive"], 1)?;
    let mut key_of = KeyOf::new(attribute, case_sensitive);
    key_of.default = is_given(default);
    let mut keyed = Vec::new();
    for item in value.items()? {
        keyed.push((key_of.get(renderer, &item)?, item));
    }
    sort_by(&mut keyed, |left, right| compare(&left.0, &right.0), false)?;
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for (key, item) in keyed {
        match groups.last_mut() {
            Some((last, items)) if equal(last, &key)? => items.push(item),
            _ => groups.push((key, vec![item])),
        }
    }
    let mut out = Vec::new();
    for (_, items) in groups {
        let shown = key_of.raw(renderer, &items[0])?;
        out.push(Value::named_tuple(vec![shown, Value::list(items)?], &["grouper", "list"])?);
    }
    Value::list(out)
}

fn first(value: &Value) -> Result<Value> {
    let nothing = || Value::undefined("No first item, sequence was empty.");
    Ok(match value {
        Value::Iterator(stream) => {
            let mut stream = stream.borrow_mut();
            match (stream.rest.next(), stream.end.take()) {
                (Some(item), end) => {
                    stream.end = end;
                    item
                }
                (None, Some(error)) => return Err(error),
                (None, None) => nothing(),
            }
        }
        Value::List(items) | Value::Tuple(items) => items.values.first().cloned().unwrap_or_else(nothing),
        _ => value.items()?.into_iter().next().unwrap_or_else(nothing),
    })
}

/// reversed(): what has a length and an order.
fn reversed(value: &Value) -> Result<Vec<Value>> {
    match value {
        Value::Iterator(_) => fail(format!("'{}' object is not reversible", value.type_name())),
        _ => {
            let mut items = value.items()?;
            items.reverse();
            Ok(items)
        }
    }
}

fn reverse(value: &Value) -> Result<Value> {
    match value {
        Value::Str(_) => slice(value, &Value::None, &Value::None, &Value::Int(-1)),
        Value::Iterator(_) => {
            let mut items = value.items()?;
            items.reverse();
            Value::list(items)
        }
        _ => Value::iterator(reversed(value)?, None),
    }
}

fn items(value: &Value) -> Result<Value> {
    match value {
        Value::Undefined(_) => Value::iterator(Vec::new(), None),
        Value::Dict(dict) => {
            let pairs = Value::View(View::Pairs, dict.clone()).items()?;
            Value::iterator(pairs, None)
        }
        _ => Value::iterator(Vec::new(), Some(Error::new("Can only get item pairs from a mapping."))),
    }
}

pub fn call(renderer: &mut Renderer, name: &str, value: Value, arguments: Arguments) -> Result<Value> {
    match name {
        "sort" => sort(renderer, &value, arguments),
        "dictsort" => dict_sort(&value, arguments),
        "map" => map(renderer, &value, arguments),
        "select" => select(renderer, &value, arguments, true, false),
        "reject" => select(renderer, &value, arguments, false, false),
        "selectattr" => select(renderer, &value, arguments, true, true),
        "rejectattr" => select(renderer, &value, arguments, false, true),
        "batch" => batch(&value, arguments),
        "slice" => slices(&value, arguments),
        "unique" => unique(renderer, &value, arguments),
        "min" | "max" => extreme(renderer, name, &value, arguments),
        "groupby" => group_by(renderer, &value, arguments),
        "attr" => {
            let [wanted] = arguments.bind("attr", ["name"], 1)?;
            match wanted.unwrap_or(Value::None).as_str() {
                Some(wanted) => renderer.attribute_only(&value, wanted),
                None => fail("attribute name must be string"),
            }
        }
        _ => {
            arguments.bind_positional::<0>(name, 0)?;
            match name {
                "first" => first(&value),
                "last" => Ok(match reversed(&value)?.into_iter().next() {
                    Some(item) => item,
                    None => Value::undefined("No last item, sequence was empty."),
                }),
                "list" => Value::list(value.items()?),
                "reverse" => reverse(&value),
                _ => items(&value),
            }
        }
    }
}
