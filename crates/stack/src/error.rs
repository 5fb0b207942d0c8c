//! Defines the error of a command, whose settings are wrong or whose run failed.

use fulgurite_base::SpecError;
use fulgurite_files::output::OutputError;
use thiserror::Error;

/// The reason why a command gives no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StackError {
    /// The settings are wrong. One sentence names the argument and the accepted values.
    #[error("{0}")]
    Request(String),
    /// The run failed: a check was violated, or the system refused something that the run needs.
    #[error("{0}")]
    Run(String),
}

impl StackError {
    /// Creates the error for wrong settings.
    pub fn request(sentence: impl Into<String>) -> StackError {
        StackError::Request(sentence.into())
    }

    /// Creates the error for a run that failed.
    pub fn run(error: impl ToString) -> StackError {
        StackError::Run(error.to_string())
    }

    /// Unwinds the run on this thread, so that the run fails with this error. It serves code that cannot
    /// return a result, such as a user's policy. Only code that [`runner`](crate::runner) executes may call
    /// this, and not while it is unwinding.
    pub fn unwind(self) -> ! {
        // Unlike a panic, `resume_unwind` prints nothing. The error is no fault of the program.
        std::panic::resume_unwind(Box::new(self))
    }

    /// Returns the error for a run that panicked: the error of [`StackError::unwind`], or the message of the
    /// panic.
    pub fn of_panic(panic: Box<dyn std::any::Any + Send>) -> StackError {
        let panic = match panic.downcast::<StackError>() {
            Ok(error) => return *error,
            Err(panic) => panic,
        };
        let reason = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        StackError::run(format!("an internal check failed: {}", reason.unwrap_or_default()))
    }

    /// Returns the command's exit code: 2 for wrong settings, 1 for a failed run.
    pub fn exit_code(&self) -> u8 {
        match self {
            StackError::Request(_) => 2,
            StackError::Run(_) => 1,
        }
    }
}

impl From<SpecError> for StackError {
    fn from(error: SpecError) -> StackError {
        StackError::Request(error.to_string())
    }
}

impl From<OutputError> for StackError {
    fn from(error: OutputError) -> StackError {
        let sentence = error.to_string();
        if error.is_request() { StackError::Request(sentence) } else { StackError::Run(sentence) }
    }
}
