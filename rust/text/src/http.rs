// SPDX-License-Identifier: Apache-2.0
//! An HTTP/1.1 server on hyper. Requests are read whole and handed to the program, which answers on any thread, whole or
//! in parts. A client that is slow or gone costs a connection and its limits, no thread.

use crate::abi::{bytes, guard, Text};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{HeaderName, HeaderValue, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::ffi::c_void;
use std::io::Read;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot, watch};

mod clients;
mod errors;
mod stream;
use clients::{Answering, Place, Places};
use errors::{ErrorWriter, WrittenError};
use stream::{Asked, PatientStream, Turn};

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Limits {
    body_bytes: usize,
    pending_bytes: usize,
    clients: usize,
    request_ms: u64,
    silence_ms: u64,
}

#[repr(C)]
pub struct Slice {
    data: *const u8,
    size: usize,
}

impl Slice {
    fn of(data: &[u8]) -> Slice {
        Slice { data: data.as_ptr(), size: data.len() }
    }
}

/// Of a request's line and headers.
const MOST_HEAD_BYTES: usize = 64 << 10;

type Handler = unsafe extern "C" fn(*mut c_void, *mut Exchange);

#[derive(Clone, Copy)]
struct Program {
    handler: Handler,
    error_writer: ErrorWriter,
    context: *mut c_void,
    limits: Limits,
}
// SAFETY: the program promises a handler and a writer of errors for any thread.
unsafe impl Send for Program {}
unsafe impl Sync for Program {}

impl Program {
    fn error(&self, status: StatusCode) -> WrittenError {
        WrittenError::of(status, self.error_writer, self.context)
    }
}

struct Head {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
}

pub struct Exchange {
    method: String,
    target: String,
    headers: hyper::HeaderMap,
    body: Bytes,
    head: Option<oneshot::Sender<Head>>,
    parts: mpsc::UnboundedSender<Bytes>,
    pending: Arc<AtomicUsize>,
    pending_limit: usize,
}

/// The body of an answer: the parts in the order in which they are sent.
struct Parts {
    receiver: mpsc::UnboundedReceiver<Bytes>,
    pending: Arc<AtomicUsize>,
    _answering: Option<Answering>,
    _asked: Asked,
}

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.receiver.poll_recv(context).map(|part| {
            part.map(|part| {
                self.pending.fetch_sub(part.len(), Ordering::Relaxed);
                Ok(Frame::data(part))
            })
        })
    }
}

fn refusal(status: StatusCode, program: &Program, asked: Asked) -> Response<Parts> {
    asked.refuse();
    let error = program.error(status);
    let size = error.body.len();
    let (sender, receiver) = mpsc::unbounded_channel();
    let pending = Arc::new(AtomicUsize::new(size));
    let _ = sender.send(error.body);
    let mut response = Response::new(Parts { receiver, pending, _answering: None, _asked: asked });
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, error.content_type);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The whole body, or the status for a client that sends too much or too slowly. What is known to be too large is not
/// read: a client that waits for "100 Continue" has nothing to send then.
async fn read_body(body: Incoming, limits: Limits) -> Result<Bytes, StatusCode> {
    if body.size_hint().lower() > limits.body_bytes as u64 {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let whole = Limited::new(body, limits.body_bytes).collect();
    match tokio::time::timeout(Duration::from_millis(limits.request_ms), whole).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err(StatusCode::PAYLOAD_TOO_LARGE)
        }
        Ok(Err(_)) => Err(StatusCode::BAD_REQUEST),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

/// What a compressed body holds, of which no more is unpacked than the limit of a plain one.
/// `encodings`: lists of codings, of which "identity" changes nothing.
fn unpacked<'a>(
    body: Bytes,
    encodings: impl Iterator<Item = &'a HeaderValue>,
    limits: Limits,
) -> Result<Bytes, StatusCode> {
    let mut is_packed = false;
    for list in encodings {
        for encoding in list.to_str().unwrap_or("?").split(',').map(str::trim) {
            if encoding.is_empty() || encoding.eq_ignore_ascii_case("identity") {
                continue;
            }
            let is_gzip = encoding.eq_ignore_ascii_case("gzip") || encoding.eq_ignore_ascii_case("x-gzip");
            if !is_gzip || is_packed {
                return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE);
            }
            is_packed = true;
        }
    }
    if !is_packed {
        return Ok(body);
    }
    let mut plain = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(&body[..]).take(limits.body_bytes as u64 + 1);
    reader.read_to_end(&mut plain).map_err(|_| StatusCode::BAD_REQUEST)?;
    if plain.len() > limits.body_bytes {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    Ok(plain.into())
}

async fn answer(
    request: Request<Incoming>,
    program: Program,
    place: Arc<Place>,
    asked: Asked,
) -> Result<Response<Parts>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = read_body(body, program.limits).await;
    let encodings = parts.headers.get_all(CONTENT_ENCODING).iter();
    let body = match body.and_then(|body| unpacked(body, encodings, program.limits)) {
        Ok(body) => body,
        Err(status) => return Ok(refusal(status, &program, asked)),
    };
    asked.is_whole(parts.version);
    let answering = Answering::on(place);
    let (head_sender, head) = oneshot::channel();
    let (sender, receiver) = mpsc::unbounded_channel();
    let pending = Arc::new(AtomicUsize::new(0));
    let exchange = Box::new(Exchange {
        method: parts.method.as_str().to_string(),
        target: parts.uri.path_and_query().map_or("/", |target| target.as_str()).to_string(),
        headers: parts.headers,
        body,
        head: Some(head_sender),
        parts: sender,
        pending: pending.clone(),
        pending_limit: program.limits.pending_bytes,
    });
    // SAFETY: the program frees it by convoy_http_end.
    unsafe { (program.handler)(program.context, Box::into_raw(exchange)) };
    let Ok(head) = head.await else {
        return Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR, &program, asked));
    };
    let mut response =
        Response::new(Parts { receiver, pending, _answering: Some(answering), _asked: asked });
    *response.status_mut() = head.status;
    response.headers_mut().extend(head.headers);
    Ok(response)
}

fn holds_line(head: &[u8]) -> bool {
    head.iter().take(MOST_HEAD_BYTES).any(|byte| *byte == b'\n')
}

async fn serve_client(
    stream: TcpStream,
    program: Program,
    place: Arc<Place>,
    mut ends: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let limits = program.limits;
    let turn = Turn::new();
    let stream = PatientStream::new(stream, Duration::from_millis(limits.silence_ms), turn.clone());
    let own = place.clone();
    let asks = move |request| answer(request, program, own.clone(), turn.ask());
    let mut connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(limits.request_ms))
        .max_buf_size(MOST_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), hyper::service::service_fn(asks));
    let ended = tokio::select! {
        ended = &mut connection => Some(ended),
        _ = place.given_up() => return,
        _ = ends.changed() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            (&mut connection).await
        }
    };
    let parts = connection.into_parts();
    let is_late = ended.is_err_and(|error| error.is_timeout()) && !parts.read_buf.is_empty();
    let error = match parts.io.inner().own_error() {
        None if is_late => Some(StatusCode::REQUEST_TIMEOUT),
        Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE) if !holds_line(&parts.read_buf) => {
            Some(StatusCode::URI_TOO_LONG)
        }
        own => own,
    };
    let error = error.map(|status| program.error(status).answer());
    tokio::select! {
        _ = parts.io.into_inner().close(error) => {}
        _ = place.given_up() => {}
    }
}

async fn serve(listener: TcpListener, program: Program, mut ends: watch::Receiver<bool>) {
    let places = Places::new(program.limits.clients);
    loop {
        let next = async {
            let (stream, _) = listener.accept().await?;
            Ok::<_, std::io::Error>((stream, places.take().await))
        };
        let accepted = tokio::select! {
            accepted = next => accepted,
            _ = ends.changed() => return,
        };
        let Ok((stream, place)) = accepted else {
            places.give_up_one(); // no descriptor is free
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (places, ends) = (places.clone(), ends.clone());
        tokio::spawn(async move {
            serve_client(stream, program, place.clone(), ends).await;
            places.free(&place);
        });
    }
}

pub struct Server {
    runtime: Runtime,
    ends: watch::Sender<bool>,
    port: u16,
}

fn start(host: &str, port: u16, program: Program) -> Result<Server, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("convoy-http")
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let listener =
        runtime.block_on(TcpListener::bind((host, port))).map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let (ends, receiver) = watch::channel(false);
    runtime.spawn(serve(listener, program, receiver));
    Ok(Server { runtime, ends, port })
}

#[no_mangle]
pub unsafe extern "C" fn convoy_http_start(
    host: *const u8,
    host_size: usize,
    port: u16,
    limits: Limits,
    handler: Handler,
    error_writer: ErrorWriter,
    context: *mut c_void,
    server: *mut *mut Server,
    error: *mut Text,
) -> i32 {
    guard(error, || {
        let host = std::str::from_utf8(bytes(host, host_size)).map_err(|error| error.to_string())?;
        let started = start(host, port, Program { handler, error_writer, context, limits })?;
        server.write(Box::into_raw(Box::new(started)));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn convoy_http_port(server: *const Server) -> u16 {
    (*server).port
}

#[no_mangle]
pub unsafe extern "C" fn convoy_http_stop(server: *mut Server, wait_ms: u64) {
    let server = Box::from_raw(server);
    let _ = server.ends.send(true);
    // Every connection holds a receiver until its last answer has gone out.
    let _ = server.runtime.block_on(async {
        tokio::time::timeout(Duration::from_millis(wait_ms), server.ends.closed()).await
    });
    server.runtime.shutdown_background();
}

#[no_mangle]
pub unsafe extern "C" fn convoy_http_method(exchange: *const Exchange) -> Slice {
    Slice::of((*exchange).method.as_bytes())
}

#[no_mangle]
pub unsafe extern "C" fn convoy_http_target(exchange: *const Exchange) -> Slice {
    Slice::of((*exchange).target.as_bytes())
}

#[no_mangle]
pub unsafe extern "C" fn convoy_http_header(exchange: *const Exchange, name: *const u8, size: usize) -> Slice {
    let name = HeaderName::from_bytes(bytes(name, size)).ok();
    let value = name.and_then(|name| (*exchange).headers.get(name));
    Slice::of(value.map_or(&[], |value| value.as_bytes()))
}

#[no_mangle]
pub unsafe extern "C" fn convoy_http_body(exchange: *const Exchange) -> Slice {
    Slice::of(&(*exchange).body)
}

/// Lines that are no header are left out: the program makes them, no client.
fn headers_of(lines: &[u8]) -> Vec<(HeaderName, HeaderValue)> {
    lines
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let name = HeaderName::from_bytes(&line[..colon]).ok()?;
            let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
            Some((name, value))
        })
        .collect()
}

#[no_mangle]
pub unsafe extern "C" fn convoy_http_begin(
    exchange: *mut Exchange,
    status: u16,
    headers: *const u8,
    size: usize,
) {
    if let Some(head) = (*exchange).head.take() {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let _ = head.send(Head { status, headers: headers_of(bytes(headers, size)) });
    }
}

#[no_mangle]
pub unsafe extern "C" fn convoy_http_send(exchange: *mut Exchange, data: *const u8, size: usize) -> i32 {
    let exchange = &*exchange;
    let unread = exchange.pending.fetch_add(size, Ordering::Relaxed);
    let fits = unread < exchange.pending_limit; // an answer of one part always does
    (fits && exchange.parts.send(Bytes::copy_from_slice(bytes(data, size))).is_ok()) as i32
}

#[no_mangle]
pub unsafe extern "C" fn convoy_http_is_open(exchange: *const Exchange) -> i32 {
    let exchange = &*exchange;
    let waits = exchange.head.as_ref().map_or(true, |head| !head.is_closed());
    (waits && !exchange.parts.is_closed()) as i32
}

#[no_mangle]
pub unsafe extern "C" fn convoy_http_end(exchange: *mut Exchange) {
    drop(Box::from_raw(exchange));
}
