// SPDX-License-Identifier: Apache-2.0
//! The answers to requests that never reach the program, in the form that the program gives them.

use crate::abi::bytes;
use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::StatusCode;
use std::ffi::c_void;

/// Calls convoy_http_put_error on the error with its answer.
pub type ErrorWriter = unsafe extern "C" fn(*mut c_void, u16, *const u8, usize, *mut WrittenError);

pub struct WrittenError {
    status: StatusCode,
    pub content_type: HeaderValue,
    pub body: Bytes,
}

fn reason(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "the request is not valid HTTP/1.1, is no gzip as it says, or ended early",
        StatusCode::REQUEST_TIMEOUT => "the request took too long to arrive",
        StatusCode::PAYLOAD_TOO_LARGE => "the body of the request is too large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "the body is compressed otherwise than by gzip",
        StatusCode::URI_TOO_LONG => "the address of the request is too long",
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "the head of the request is too large",
        _ => "the request was not answered",
    }
}

impl WrittenError {
    pub fn of(status: StatusCode, writer: ErrorWriter, context: *mut c_void) -> WrittenError {
        let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
        let mut error = WrittenError { status, content_type, body: Bytes::new() };
        let why = reason(status);
        // SAFETY: `error` and `why` outlive the call.
        unsafe { writer(context, status.as_u16(), why.as_ptr(), why.len(), &mut error) };
        error
    }

    /// As it goes over a connection that ends with it.
    pub fn answer(&self) -> Vec<u8> {
        let head = format!(
            "HTTP/1.1 {}\r\ncontent-type: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            self.status,
            self.content_type.to_str().unwrap_or_default(),
            self.body.len()
        );
        [head.as_bytes(), &self.body].concat()
    }
}

#[no_mangle]
pub unsafe extern "C" fn convoy_http_put_error(
    error: *mut WrittenError,
    content_type: *const u8,
    type_size: usize,
    body: *const u8,
    body_size: usize,
) {
    if let Ok(content_type) = HeaderValue::from_bytes(bytes(content_type, type_size)) {
        (*error).content_type = content_type;
    }
    (*error).body = Bytes::copy_from_slice(bytes(body, body_size));
}
