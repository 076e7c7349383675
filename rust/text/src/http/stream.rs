// SPDX-License-Identifier: Apache-2.0
//! The connection of a client, between hyper and the socket. The client must take what is written. It may close its
//! sending side and still gets its answer. Errors that hyper answers by itself, without a body, are kept back.

use hyper::{StatusCode, Version};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

const HEAD: u8 = 0; // the head of a request is awaited or read
const BODY: u8 = 1; // its body is read
const ANSWER: u8 = 2; // the program answers it
const LAST: u8 = 3; // hyper has the whole answer, which it may not have written

/// Where a connection stands in its requests. Shared by its stream and its service.
pub struct Turn {
    stage: AtomicU8,
    may_probe: AtomicBool,
    refused: AtomicBool,
}

impl Turn {
    pub fn new() -> Arc<Turn> {
        Arc::new(Turn {
            stage: AtomicU8::new(HEAD),
            may_probe: AtomicBool::new(false),
            refused: AtomicBool::new(false),
        })
    }

    pub fn ask(self: &Arc<Turn>) -> Asked {
        self.go_to(BODY);
        Asked(self.clone())
    }

    fn stage(&self) -> u8 {
        self.stage.load(Ordering::Relaxed)
    }

    fn go_to(&self, stage: u8) {
        self.stage.store(stage, Ordering::Relaxed);
    }
}

/// A request, until hyper has its whole answer.
pub struct Asked(Arc<Turn>);

impl Asked {
    pub fn is_whole(&self, version: Version) {
        // A client of HTTP/1.0 gets no interim answers.
        self.0.may_probe.store(version == Version::HTTP_11, Ordering::Relaxed);
        self.0.go_to(ANSWER);
    }

    /// A part of the request may be unread.
    pub fn refuse(&self) {
        self.0.refused.store(true, Ordering::Relaxed);
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.go_to(LAST);
    }
}

/// How a client is watched that closed its sending side while its answer is computed. It may have left altogether,
/// which shows only when something is sent to it: its machine then resets the connection.
struct HalfClosed {
    probed: bool,
    wait: Duration,
    next_look: Pin<Box<Sleep>>,
}

/// An interim answer, which each client of HTTP/1.1 must take at any time (RFC 9110, 15.2).
const PROBE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
const FIRST_WAIT: Duration = Duration::from_millis(10);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// For what a refused client is still sending: a socket that is closed with unread bytes resets the connection, and the
/// client might lose the answer.
const LINGER: Duration = Duration::from_secs(2);

pub struct PatientStream {
    stream: TcpStream,
    limit: Duration,
    turn: Arc<Turn>,
    silence: Option<Pin<Box<Sleep>>>,
    ended: bool, // its client closed its sending side
    half_closed: Option<HalfClosed>,
    answer_began: bool,
    own_error: Option<StatusCode>,
}

impl PatientStream {
    /// Fails when its client takes nothing of what is written for `limit`.
    pub fn new(stream: TcpStream, limit: Duration, turn: Arc<Turn>) -> PatientStream {
        PatientStream {
            stream,
            limit,
            turn,
            silence: None,
            ended: false,
            half_closed: None,
            answer_began: false,
            own_error: None,
        }
    }

    /// The status of an error that hyper found in the head of a request, and whose answer was not sent.
    pub fn own_error(&self) -> Option<StatusCode> {
        self.own_error
    }

    /// Sends `last`, and lets the client take what was sent to it.
    pub async fn close(mut self, last: Option<Vec<u8>>) {
        let lingers = last.is_some() || self.turn.refused.load(Ordering::Relaxed);
        if let Some(last) = last {
            let _ = tokio::time::timeout(self.limit, self.stream.write_all(&last)).await;
        }
        let _ = self.stream.shutdown().await;
        if lingers {
            let unread = async {
                let mut buffer = [0; 4096];
                while self.stream.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
            };
            let _ = tokio::time::timeout(LINGER, unread).await;
        }
    }

    /// Between requests hyper writes only answers of its own, to heads that it cannot read.
    fn keep_back(&mut self, answer: &[u8]) -> Option<Poll<io::Result<usize>>> {
        if self.turn.stage() != HEAD {
            self.answer_began = true;
            return None;
        }
        let status = answer.get("HTTP/1.1 ".len()..).and_then(|rest| rest.get(..3));
        self.own_error = self.own_error.or(status.and_then(|code| StatusCode::from_bytes(code).ok()));
        Some(Poll::Ready(Ok(answer.len())))
    }

    fn judge(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.silence = None;
            return written;
        }
        let limit = self.limit;
        let silence = self.silence.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        silence.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Ready when the client has left.
    fn watch(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let may_probe = !self.answer_began && self.turn.may_probe.load(Ordering::Relaxed);
        let half_closed = self.half_closed.get_or_insert_with(|| HalfClosed {
            probed: false,
            wait: FIRST_WAIT,
            next_look: Box::pin(tokio::time::sleep(FIRST_WAIT)),
        });
        if may_probe && !half_closed.probed {
            half_closed.probed = true;
            match self.stream.try_write(PROBE) {
                Ok(written) if written < PROBE.len() => {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Poll::Ready(Err(error)),
                _ => {}
            }
        }
        loop {
            if let Some(error) = self.stream.take_error()? {
                return Poll::Ready(Err(error));
            }
            ready!(half_closed.next_look.as_mut().poll(context));
            half_closed.wait = LONGEST_WAIT.min(half_closed.wait * 2);
            half_closed.next_look = Box::pin(tokio::time::sleep(half_closed.wait));
        }
    }
}

impl AsyncRead for PatientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ended {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
            if buffer.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
            self.ended = true;
            if self.turn.stage() == BODY {
                // The service may have the whole body and not have looked at it yet.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        // While an answer is under way hyper would take the end for the client's leave.
        if self.turn.stage() < ANSWER {
            return Poll::Ready(Ok(()));
        }
        self.watch(context)
    }
}

impl AsyncWrite for PatientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(kept) = self.keep_back(bytes) {
            return kept;
        }
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(kept) = self.keep_back(slices.first().map_or(&[], |first| first)) {
            return kept;
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called once hyper has written all that it has.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.turn.stage() == LAST {
            self.turn.go_to(HEAD);
            self.answer_began = false;
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Later: by close().
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
