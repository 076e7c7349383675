// SPDX-License-Identifier: Apache-2.0
//! Errors of templates, with the line they come from.

use crate::budget;

#[derive(Clone, Debug)]
pub struct Error {
    pub message: String,
    /// 1-based; 0 until the statement or expression that failed adds it.
    pub line: usize,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(message: impl Into<String>) -> Error {
        Error { message: message.into(), line: 0 }
    }

    pub fn at(message: impl Into<String>, line: usize) -> Error {
        Error { message: message.into(), line }
    }

    /// Innermost lines stay.
    pub fn or_line(mut self, line: usize) -> Error {
        if self.line == 0 {
            self.line = line;
        }
        self
    }
}

impl From<String> for Error {
    fn from(message: String) -> Error {
        Error::new(message)
    }
}

pub fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::new(message))
}

/// Spends steps for a copy of `bytes`.
pub fn spend_copy(bytes: usize) -> Result<()> {
    Ok(budget::spend(1 + bytes / 512)?)
}

/// Spends steps for work on each letter of `bytes` of text.
pub fn spend_text(bytes: usize) -> Result<()> {
    Ok(budget::spend(1 + bytes / 16)?)
}

pub fn spend(steps: usize) -> Result<()> {
    Ok(budget::spend(steps)?)
}

pub fn reserve(bytes: usize) -> Result<()> {
    Ok(budget::reserve(bytes)?)
}

pub fn descend() -> Result<()> {
    Ok(budget::descend()?)
}
