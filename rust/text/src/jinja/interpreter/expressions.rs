// SPDX-License-Identifier: Apache-2.0
//! Evaluates expressions.

use crate::jinja::error::{descend, fail, reserve, spend, Result};
use crate::jinja::grammar::syntax::{Call, Comparison, Constant, Expr, ExprKind};
use crate::jinja::interpreter::state::Renderer;
use crate::jinja::values::arguments::Arguments;
use crate::jinja::values::members::{get_attribute, get_item, has};
use crate::jinja::values::methods;
use crate::jinja::values::operators::{self, binary, contains, negative, positive};
use crate::jinja::values::order::{compare, equal};
use crate::jinja::values::strings::join_texts;
use crate::jinja::values::value::{Dict, Object, Value};

fn compares(comparison: Comparison, left: &Value, right: &Value) -> Result<bool> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    Ok(match comparison {
        Comparison::Equal => equal(left, right)?,
        Comparison::NotEqual => !equal(left, right)?,
        Comparison::Less => compare(left, right)? == Some(Less),
        Comparison::LessOrEqual => matches!(compare(left, right)?, Some(Less | Equal)),
        Comparison::Greater => compare(left, right)? == Some(Greater),
        Comparison::GreaterOrEqual => matches!(compare(left, right)?, Some(Greater | Equal)),
        Comparison::In => contains(right, left)?,
        Comparison::NotIn => !contains(right, left)?,
    })
}

fn constant(constant: &Constant) -> Value {
    match constant {
        Constant::None => Value::None,
        Constant::Bool(value) => Value::Bool(*value),
        Constant::Int(value) => Value::Int(*value),
        Constant::Float(value) => Value::Float(*value),
        Constant::Str(text) => text.as_str().into(),
    }
}

impl<'t> Renderer<'t> {
    pub fn holds(&mut self, expr: &'t Expr) -> Result<bool> {
        Ok(self.evaluate(expr)?.is_true())
    }

    pub fn evaluate(&mut self, expr: &'t Expr) -> Result<Value> {
        spend(1)?;
        descend()?;
        self.evaluate_kind(expr).map_err(|error| error.or_line(expr.line))
    }

    fn evaluate_kind(&mut self, expr: &'t Expr) -> Result<Value> {
        match &*expr.kind {
            ExprKind::Constant(value) => {
                if let Constant::Str(text) = value {
                    reserve(text.len())?;
                }
                Ok(constant(value))
            }
            ExprKind::Name(name) => Ok(self.lookup(name)),
            ExprKind::List(items) => Value::list(self.evaluate_all(items)?),
            ExprKind::Tuple(items) => Value::tuple(self.evaluate_all(items)?),
            ExprKind::Dict(pairs) => {
                let mut dict = Dict::default();
                for (key, value) in pairs {
                    let key = self.evaluate(key)?;
                    dict.insert(key, self.evaluate(value)?)?;
                }
                Ok(Value::dict(dict))
            }
            ExprKind::Negative(inner) => negative(&self.evaluate(inner)?),
            ExprKind::Positive(inner) => positive(&self.evaluate(inner)?),
            ExprKind::Not(inner) => Ok((!self.holds(inner)?).into()),
            ExprKind::And(left, right) => {
                let left = self.evaluate(left)?;
                if left.is_true() {
                    self.evaluate(right)
                } else {
                    Ok(left)
                }
            }
            ExprKind::Or(left, right) => {
                let left = self.evaluate(left)?;
                if left.is_true() {
                    Ok(left)
                } else {
                    self.evaluate(right)
                }
            }
            ExprKind::Binary(operator, left, right) => {
                let left = self.evaluate(left)?;
                binary(*operator, &left, &self.evaluate(right)?)
            }
            ExprKind::Concat(parts) => self.concat(parts),
            ExprKind::Compare(left, rest) => self.compare_chain(left, rest),
            ExprKind::Conditional { test, yes, no } => {
                if self.holds(test)? {
                    return self.evaluate(yes);
                }
                match no {
                    Some(no) => self.evaluate(no),
                    None => Ok(Value::undefined(
                        "the inline if-expression evaluated to false and no else section was defined",
                    )),
                }
            }
            ExprKind::Attribute(of, name) => {
                let of = self.evaluate(of)?;
                self.attribute(&of, name)
            }
            ExprKind::Item(of, index) => {
                let of = self.evaluate(of)?;
                let index = self.evaluate(index)?;
                self.item(&of, &index)
            }
            ExprKind::Slice { of, start, stop, step } => self.slice(of, [start, stop, step]),
            ExprKind::Call(of, call) => {
                let function = self.evaluate(of)?;
                let arguments = self.arguments(call)?;
                self.call(&function, arguments)
            }
            ExprKind::Filter(of, filter) => {
                let value = match of {
                    Some(of) => self.evaluate(of)?,
                    None => self.filtered.clone(),
                };
                let arguments = self.arguments(&filter.call)?;
                self.filter(&filter.name, value, arguments).map_err(|error| error.or_line(filter.line))
            }
            ExprKind::Test { of, name, call } => {
                let value = self.evaluate(of)?;
                let arguments = self.arguments(call)?;
                Ok(self.test(name, &value, arguments)?.into())
            }
        }
    }

    fn evaluate_all(&mut self, exprs: &'t [Expr]) -> Result<Vec<Value>> {
        exprs.iter().map(|expr| self.evaluate(expr)).collect()
    }

    fn concat(&mut self, parts: &'t [Expr]) -> Result<Value> {
        let mut texts = Vec::new();
        for part in self.evaluate_all(parts)? {
            texts.push(match &part {
                Value::Str(text) => text.text.clone(),
                _ => self.text_of(&part)?.into(),
            });
        }
        Ok(join_texts("", &texts)?.into())
    }

    fn compare_chain(&mut self, left: &'t Expr, rest: &'t [(Comparison, Expr)]) -> Result<Value> {
        let mut left = self.evaluate(left)?;
        for (comparison, right) in rest {
            let right = self.evaluate(right)?;
            if !compares(*comparison, &left, &right)? {
                return Ok(false.into());
            }
            left = right;
        }
        Ok(true.into())
    }

    fn slice(&mut self, of: &'t Expr, bounds: [&'t Option<Expr>; 3]) -> Result<Value> {
        let of = self.evaluate(of)?;
        let mut values = [Value::None, Value::None, Value::None];
        for (value, bound) in values.iter_mut().zip(bounds) {
            if let Some(bound) = bound {
                *value = self.evaluate(bound)?;
            }
        }
        operators::slice(&of, &values[0], &values[1], &values[2])
    }

    pub fn arguments(&mut self, call: &'t Call) -> Result<Arguments> {
        let mut arguments = Arguments::of(self.evaluate_all(&call.positional)?);
        if let Some(spread) = &call.spread {
            arguments.positional.extend(self.evaluate(spread)?.items()?);
        }
        for (name, value) in &call.named {
            let value = self.evaluate(value)?;
            arguments.named.push((name.as_str().into(), value));
        }
        if let Some(spread) = &call.spread_named {
            let spread = self.evaluate(spread)?;
            let Value::Dict(dict) = &spread else {
                return fail(format!("argument after ** must be a mapping, not {}", spread.type_name()));
            };
            for (name, value) in dict.pairs() {
                let Value::Str(name) = name else { return fail("keywords must be strings") };
                if arguments.named.iter().any(|(known, _)| *known == name.text) {
                    return fail(format!("got multiple values for keyword argument '{}'", name.text));
                }
                arguments.named.push((name.text.clone(), value.clone()));
            }
        }
        Ok(arguments)
    }

    /// Attributes of what only the renderer knows; None for other values.
    fn object_attribute(&mut self, value: &Value, name: &str) -> Result<Option<Value>> {
        let Value::Object(kind, index) = value else { return Ok(None) };
        Ok(match (kind, name) {
            (Object::Namespace, _) => self.namespaces[*index].get_text(name).cloned(),
            (Object::Loop, _) => self.loop_attribute(*index, name)?,
            (Object::Cycler, "current") => {
                let (items, at) = &self.cyclers[*index];
                Some(items[*at].clone())
            }
            (Object::Cycler, "next" | "reset") => Some(Value::method(value.clone(), name)),
            (Object::Macro, _) => self.macro_attribute(*index, name)?,
            (Object::Joiner, "sep") => Some(self.joiners[*index].0.clone()),
            (Object::Joiner, "used") => Some(Value::Bool(self.joiners[*index].1)),
            (Object::Cycler, "items") => Some(Value::tuple(self.cyclers[*index].0.clone())?),
            (Object::Cycler, "pos") => Some(self.cyclers[*index].1.into()),
            _ => None,
        })
    }

    fn macro_attribute(&self, index: usize, name: &str) -> Result<Option<Value>> {
        let code = self.macros[index].code;
        Ok(Some(match name {
            "name" => code.name.as_deref().map_or(Value::None, Value::from),
            "arguments" => Value::tuple(code.parameters.iter().map(|name| name.as_str().into()).collect())?,
            "catch_kwargs" => code.uses_kwargs.into(),
            "catch_varargs" => code.uses_varargs.into(),
            "caller" => code.uses_caller.into(),
            "explicit_caller" => code.parameters.iter().any(|name| name == "caller").into(),
            _ => return Ok(None),
        }))
    }

    pub fn attribute(&mut self, value: &Value, name: &str) -> Result<Value> {
        match self.object_attribute(value, name)? {
            Some(found) => Ok(found),
            None => get_attribute(value, name),
        }
    }

    /// Jinja2's environment.getitem.
    pub fn item(&mut self, value: &Value, index: &Value) -> Result<Value> {
        if let (Value::Object(..), Some(name)) = (value, index.as_str()) {
            return self.attribute(value, name);
        }
        get_item(value, index)
    }

    /// The attribute, and never the item.
    pub fn attribute_only(&mut self, value: &Value, name: &str) -> Result<Value> {
        value.refuse_undefined()?;
        if name.starts_with("__") || !matches!(value, Value::Dict(_)) {
            return self.attribute(value, name);
        }
        if has(value, name) {
            return self.attribute(value, name);
        }
        Ok(Value::undefined(format!("'dict object' has no attribute '{name}'")))
    }

    /// `a.b.0` of an item, as filters take it in `attribute=`.
    pub fn attribute_path(&mut self, item: &Value, path: &Value, default: Option<&Value>) -> Result<Value> {
        let Some(path) = path.as_str() else {
            let found = self.item(item, path)?;
            return Ok(default.filter(|_| found.is_undefined()).cloned().unwrap_or(found));
        };
        let mut value = item.clone();
        for part in path.split('.') {
            spend(1)?;
            let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            let index = match part.parse::<i128>() {
                Ok(number) if is_number => Value::Int(number),
                _ => Value::from(part),
            };
            value = self.item(&value, &index)?;
            if let (Some(default), true) = (default, value.is_undefined()) {
                value = default.clone();
            }
        }
        Ok(value)
    }

    pub fn call(&mut self, function: &Value, arguments: Arguments) -> Result<Value> {
        descend()?;
        spend(1)?;
        function.refuse_undefined()?;
        match function {
            Value::Function(name) => match self.library.function(name) {
                Some(function) => function(self, name, arguments),
                None => fail(format!("no function named '{name}'")),
            },
            Value::Object(Object::Macro, index) => self.call_macro(*index, arguments),
            Value::Object(Object::Loop, index) => self.loop_again(*index, arguments),
            Value::Object(Object::Joiner, index) => self.join(*index, arguments),
            Value::Method(method) => match &method.receiver {
                Value::Object(Object::Loop, index) => self.loop_method(*index, &method.name, arguments),
                Value::Object(Object::Cycler, index) => self.cycle(*index, &method.name, arguments),
                receiver => methods::call(receiver, &method.name, arguments),
            },
            _ => fail(format!("'{}' object is not callable", function.type_name())),
        }
    }

    pub fn filter(&mut self, name: &str, value: Value, arguments: Arguments) -> Result<Value> {
        spend(1)?;
        match self.library.filter(name) {
            Some(filter) => filter(self, name, value, arguments),
            None => fail(format!("no filter named '{name}'")),
        }
    }

    pub fn test(&self, name: &str, value: &Value, arguments: Arguments) -> Result<bool> {
        match self.library.test(name) {
            Some(test) => test(self.library, name, value, arguments),
            None => fail(format!("no test named '{name}'")),
        }
    }

    fn join(&mut self, index: usize, arguments: Arguments) -> Result<Value> {
        arguments.bind_positional::<0>("joiner", 0)?;
        let (separator, used) = &mut self.joiners[index];
        let first = !std::mem::replace(used, true);
        Ok(if first { "".into() } else { separator.clone() })
    }

    fn cycle(&mut self, index: usize, name: &str, arguments: Arguments) -> Result<Value> {
        arguments.bind_positional::<0>(name, 0)?;
        let (items, at) = &mut self.cyclers[index];
        if name == "reset" {
            *at = 0;
            return Ok(Value::None);
        }
        let current = items[*at].clone();
        *at = (*at + 1) % items.len();
        Ok(current)
    }
}
