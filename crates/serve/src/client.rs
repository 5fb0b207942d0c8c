//! The client's side of the control protocol.

use fulgurite_stack::StackError;
use serde_json::{Map, Value};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Sends one command to the drive that is served with this control socket, and waits until it is done. `armed` is
/// called when the drive waits for the point of a power cut. Returns the results by name.
pub fn control(
    socket: &Path,
    command: &Value,
    armed: impl FnOnce(),
) -> Result<Map<String, Value>, StackError> {
    let lost = |error| StackError::run(format!("the server at {} gave no answer: {error}", socket.display()));
    let mut stream = UnixStream::connect(socket).map_err(|error| {
        StackError::request(format!(
            "{} is no control socket of a served drive: {error}; accepted: the path that serve --control was given",
            socket.display()
        ))
    })?;
    stream.write_all(format!("{command}\n").as_bytes()).map_err(lost)?;
    let mut lines = BufReader::new(stream);
    let mut armed = Some(armed);
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).map_err(lost)? == 0 {
            return Err(StackError::run(format!("the server at {} ended", socket.display())));
        }
        let answer: Map<String, Value> = serde_json::from_str(&line)
            .map_err(|_| StackError::request(format!("{} is no control socket of ours", socket.display())))?;
        match (answer.get("armed"), answer.get("error")) {
            (Some(_), _) => {
                if let Some(armed) = armed.take() {
                    armed();
                }
            }
            (None, Some(why)) => {
                return Err(StackError::request(why.as_str().unwrap_or("the drive refuses").to_owned()));
            }
            (None, None) => return Ok(answer.into_iter().filter(|(name, _)| name != "ok").collect()),
        }
    }
}
