// SPDX-License-Identifier: Apache-2.0
//! Arguments of a call, bound to parameters as Python binds them.

use std::rc::Rc;

use crate::jinja::error::{fail, Result};
use crate::jinja::values::value::{Dict, Text, Value};

#[derive(Default, Clone)]
pub struct Arguments {
    pub positional: Vec<Value>,
    pub named: Vec<(Rc<str>, Value)>,
}

impl Arguments {
    pub fn of(positional: Vec<Value>) -> Arguments {
        Arguments { positional, named: Vec::new() }
    }

    pub fn take_named(&mut self, name: &str) -> Option<Value> {
        let at = self.named.iter().position(|(found, _)| &**found == name)?;
        Some(self.named.remove(at).1)
    }

    /// The parameters `names` in order, the first `required` of which must be given.
    pub fn bind<const N: usize>(
        mut self,
        function: &str,
        names: [&str; N],
        required: usize,
    ) -> Result<[Option<Value>; N]> {
        if self.positional.len() > N {
            return fail(format!("{function} takes at most {N} argument(s), got {}", self.positional.len()));
        }
        let mut bound: [Option<Value>; N] = std::array::from_fn(|_| None);
        for (place, value) in bound.iter_mut().zip(self.positional.drain(..)) {
            *place = Some(value);
        }
        for (name, value) in self.named {
            let Some(at) = names.iter().position(|known| *known == &*name) else {
                return fail(format!("{function} got an unexpected keyword argument '{name}'"));
            };
            if bound[at].is_some() {
                return fail(format!("{function} got multiple values for argument '{name}'"));
            }
            bound[at] = Some(value);
        }
        if let Some(at) = bound.iter().take(required).position(Option::is_none) {
            return fail(format!("{function} misses its argument '{}'", names[at]));
        }
        Ok(bound)
    }

    /// For functions whose parameters have no names.
    pub fn bind_positional<const N: usize>(
        self,
        function: &str,
        required: usize,
    ) -> Result<[Option<Value>; N]> {
        if let Some((name, _)) = self.named.first() {
            return fail(format!("{function} takes no keyword argument '{name}'"));
        }
        self.bind(function, [""; N], required)
    }

    /// dict(): pairs and names.
    pub fn into_dict(self) -> Result<Dict> {
        let mut dict = Dict::default();
        match self.positional.as_slice() {
            [] => {}
            [undefined @ Value::Undefined(_)] => undefined.refuse_undefined()?,
            [Value::Dict(other)] => {
                for (key, value) in other.pairs() {
                    dict.insert(key.clone(), value.clone())?;
                }
            }
            [pairs] => {
                for pair in pairs.items()? {
                    let sides = pair.items()?;
                    let [key, value] = sides.as_slice() else {
                        return fail("dict: wanted pairs of a key and a value");
                    };
                    dict.insert(key.clone(), value.clone())?;
                }
            }
            more => return fail(format!("dict expected at most 1 argument, got {}", more.len())),
        }
        for (name, value) in self.named {
            dict.insert(Value::Str(Text { text: name, markup: false }), value)?;
        }
        Ok(dict)
    }
}

/// An argument that Python takes as an index (int or bool).
pub fn index(value: &Value, function: &str) -> Result<i128> {
    match value.as_index() {
        Some(index) => Ok(index),
        None => {
            fail(format!("{function}: '{}' object cannot be interpreted as an integer", value.type_name()))
        }
    }
}

pub fn text<'v>(value: &'v Value, function: &str) -> Result<&'v str> {
    match value.as_str() {
        Some(text) => Ok(text),
        None => fail(format!("{function}: wanted str, got {}", value.type_name())),
    }
}
