//! A slow listener holds the sender back; nothing piles up in between.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use selvedge_model::{Delta, ModelError};
use selvedge_testkit::Wire;
use tokio_util::sync::CancellationToken;

use crate::world::{WIRES, provider, request};

/// More than all the buffers of the machine between two programs hold.
const BYTES: usize = 64 * 1024 * 1024;
/// A sender whose bytes nobody takes for so long is held back.
const PATIENCE: Duration = Duration::from_millis(500);

/// An event that says something, and may come any number of times.
fn words(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenAi => "data: {\"choices\":[{\"delta\":{\"content\":\"on and on \"}}]}\n\n",
        Wire::Responses => {
            "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"on \"}\n\n"
        }
        Wire::Anthropic => {
            "data: {\"type\":\"content_block_delta\",\"index\":0,\
             \"delta\":{\"type\":\"text_delta\",\"text\":\"on \"}}\n\n"
        }
        Wire::Gemini => {
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"on and on \"}]}}]}\n\n"
        }
    }
}

fn opening(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenAi | Wire::Gemini => "",
        Wire::Responses => {
            "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\
             \"item\":{\"type\":\"message\"}}\n\n"
        }
        Wire::Anthropic => {
            "data: {\"type\":\"content_block_start\",\"index\":0,\
             \"content_block\":{\"type\":\"text\"}}\n\n"
        }
    }
}

/// Sends words until nobody takes them any more; returns how many bytes went out.
fn send(listener: &TcpListener, wire: Wire) -> usize {
    let (mut socket, _) = listener.accept().unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    let mut asked = [0; 4096];
    assert!(socket.read(&mut asked).unwrap() > 0);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    socket.write_all(head.as_bytes()).unwrap();
    socket.write_all(opening(wire).as_bytes()).unwrap();
    let many = words(wire).repeat(500);
    let mut sent = 0;
    while sent < BYTES {
        match socket.write(many.as_bytes()) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return sent,
            Err(error) => panic!("{wire:?}: {error}"),
        }
    }
    sent
}

#[test]
fn a_sender_waits_for_a_listener_that_is_slow() {
    for wire in WIRES {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (held_back, until_held_back) = mpsc::channel::<()>();
        let asking = thread::spawn(move || {
            let provider = provider(wire, url, Duration::from_secs(60));
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let cancel = CancellationToken::new();
            let enough = cancel.clone();
            let mut sink = move |delta| {
                if matches!(delta, Delta::Request(_)) {
                    return;
                }
                // Hears nothing more until the other end gave up.
                let _ = until_held_back.recv();
                enough.cancel();
            };
            runtime.block_on(provider.ask(&request(), &mut sink, &cancel))
        });
        let sent = send(&listener, wire);
        assert!(sent < BYTES, "{wire:?}: all of it was taken");
        drop((listener, held_back));
        assert_eq!(asking.join().unwrap(), Err(ModelError::Cancelled));
    }
}
