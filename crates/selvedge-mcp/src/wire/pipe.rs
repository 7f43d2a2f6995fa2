//! Messages over the pipes of a program: a line each.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use selvedge_tool::{Keeper, Started};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use super::{Fault, Log, MESSAGE_BYTES_MAX, UNANSWERED_BYTES_MAX};

/// How long a program has to end after its input has.
const END_GRACE: Duration = Duration::from_secs(2);
const READ_BYTES: usize = 64 * 1024;
type Writer = Arc<Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>>;

/// The pipes of a program that is a server.
pub(crate) struct Pipe {
    reader: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    line: Vec<u8>,
    unanswered_bytes: usize,
    writer: Writer,
    keeper: Option<Keeper>,
    fault: Fault,
}

/// What a read came to.
enum Line {
    Whole,
    TooLong,
    End,
}

impl Pipe {
    /// Speaks to a program that was started; what it complains of goes to `log`.
    pub(crate) fn new(started: Started, log: &Log, fault: Fault) -> Self {
        tokio::spawn(log.clone().follow(started.complaints));
        Self::over(started.output, started.input, Some(started.keeper), fault)
    }

    fn over(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        keeper: Option<Keeper>,
        fault: Fault,
    ) -> Self {
        Self {
            reader: BufReader::with_capacity(READ_BYTES, Box::new(reader)),
            line: Vec::new(),
            unanswered_bytes: 0,
            writer: Arc::new(Mutex::new(Some(Box::new(writer)))),
            keeper,
            fault,
        }
    }

    /// Reads a line into `line`. Safe to abandon at any point: what was read is kept.
    async fn read_line(&mut self) -> io::Result<Line> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(Line::End);
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let count = newline.map_or(available.len(), |at| at + 1);
            if self.line.len() + count > MESSAGE_BYTES_MAX {
                return Ok(Line::TooLong);
            }
            self.line.extend_from_slice(&available[..count]);
            self.reader.consume(count);
            self.unanswered_bytes += count;
            if newline.is_some() {
                return Ok(Line::Whole);
            }
        }
    }

    /// The message that `line` is; nothing if there is none to pass on.
    fn take(&mut self) -> Result<Option<RxJsonRpcMessage<RoleClient>>, String> {
        let line = std::mem::take(&mut self.line);
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(None);
        }
        let value: Value = serde_json::from_slice(line)
            .map_err(|error| format!("it said what is not JSON ({error}): {}", start(line)))?;
        let (is_method, is_answer) = (
            value.get("method").is_some(),
            value.get("result").is_some() || value.get("error").is_some(),
        );
        let message = serde_json::from_value(value);
        match message {
            Ok(message) => {
                if is_answer {
                    self.unanswered_bytes = 0;
                }
                Ok(Some(message))
            }
            // A notification or a request that is not known here is not meant for us.
            Err(_) if is_method => Ok(None),
            Err(_) => Err(format!("it said what is no message: {}", start(line))),
        }
    }

    /// Ends the program: nobody speaks to it any more.
    async fn stop(&mut self, grace: Duration) -> Option<std::process::ExitStatus> {
        self.writer.lock().await.take();
        match self.keeper.take() {
            Some(keeper) => keeper.end(grace).await,
            None => None,
        }
    }

    async fn fail(&mut self, what: String) {
        self.fault.set(what);
        self.stop(Duration::ZERO).await;
    }
}

impl Transport<RoleClient> for Pipe {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writer = self.writer.clone();
        async move {
            let mut bytes = serde_json::to_vec(&item)?;
            bytes.push(b'\n');
            let mut writer = writer.lock().await;
            let writer = writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            writer.write_all(&bytes).await?;
            writer.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            match self.read_line().await {
                Ok(Line::Whole) => {}
                Ok(Line::TooLong) => {
                    let megabytes = MESSAGE_BYTES_MAX >> 20;
                    self.fail(format!("it said more than {megabytes} MB at once"))
                        .await;
                    return None;
                }
                Ok(Line::End) | Err(_) => {
                    self.stop(END_GRACE).await;
                    return None;
                }
            }
            match self.take() {
                Ok(_) if self.unanswered_bytes > UNANSWERED_BYTES_MAX => {
                    let megabytes = UNANSWERED_BYTES_MAX >> 20;
                    self.fail(format!("it said {megabytes} MB without an answer"))
                        .await;
                    return None;
                }
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(what) => {
                    self.fail(what).await;
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.stop(END_GRACE).await;
        Ok(())
    }
}

/// The beginning of a line, for a person to see what it was.
fn start(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(200)]);
    let text: String = text.chars().take(60).collect();
    format!("`{}`", text.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of what a server says: how many messages, and the fault.
    async fn hear(said: &[u8]) -> (usize, Option<String>) {
        let fault = Fault::default();
        let reader = io::Cursor::new(said.to_vec());
        let mut pipe = Pipe::over(reader, tokio::io::sink(), None, fault.clone());
        let mut count = 0;
        while pipe.receive().await.is_some() {
            count += 1;
        }
        (count, fault.get().map(str::to_owned))
    }

    #[tokio::test]
    async fn a_message_is_a_line_and_empty_lines_are_none() {
        let said = b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n\n\
            {\"jsonrpc\":\"2.0\",\"method\":\"notifications/of/their/own\"}\n";
        let (count, fault) = hear(said).await;
        assert_eq!((count, fault), (2, None));
    }

    #[tokio::test]
    async fn what_is_no_message_is_a_fault() {
        for said in [
            &b"Listening on stdio\n"[..],
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\n",
            b"{\"hello\":\"world\"}\n",
            b"[1, 2]\n",
            b"\xff\xfe\n",
        ] {
            let (count, fault) = hear(said).await;
            assert_eq!(count, 0);
            assert!(fault.is_some(), "{}", String::from_utf8_lossy(said));
        }
    }

    #[tokio::test]
    async fn a_message_without_an_end_is_not_read_to_its_end() {
        let (count, fault) = hear(&vec![b'a'; MESSAGE_BYTES_MAX + 1]).await;
        assert_eq!(count, 0);
        assert!(fault.unwrap().contains("more than 16 MB at once"));
    }
}
