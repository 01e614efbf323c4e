//! Statuses.

use std::ffi::CStr;

/// `ucs_status_t`: an enumeration of one byte, in results, parameters and members alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub i8);

macro_rules! statuses {
    ($($name:ident = $value:literal, $c:literal, $words:literal;)*) => {
        impl Status {
            $(pub const $name: Self = Self($value);)*

            /// UCX's words for it, which users look for; none for a number without a meaning.
            pub const fn words(self) -> Option<&'static CStr> {
                match self {
                    $(Self::$name => Some($words),)*
                    _ => None,
                }
            }
        }

        /// Every status, by its name in C.
        pub const ALL: &[(&str, Status)] = &[$(($c, Status::$name),)*];
    };
}

statuses! {
    OK = 0, "UCS_OK", c"Success";
    IN_PROGRESS = 1, "UCS_INPROGRESS", c"Operation in progress";
    NO_MESSAGE = -1, "UCS_ERR_NO_MESSAGE", c"No pending message";
    NO_RESOURCE = -2, "UCS_ERR_NO_RESOURCE",
        c"No resources are available to initiate the operation";
    IO_ERROR = -3, "UCS_ERR_IO_ERROR", c"Input/output error";
    NO_MEMORY = -4, "UCS_ERR_NO_MEMORY", c"Out of memory";
    INVALID_PARAM = -5, "UCS_ERR_INVALID_PARAM", c"Invalid parameter";
    UNREACHABLE = -6, "UCS_ERR_UNREACHABLE", c"Destination is unreachable";
    INVALID_ADDR = -7, "UCS_ERR_INVALID_ADDR", c"Address not valid";
    NOT_IMPLEMENTED = -8, "UCS_ERR_NOT_IMPLEMENTED", c"Function not implemented";
    MESSAGE_TRUNCATED = -9, "UCS_ERR_MESSAGE_TRUNCATED", c"Message truncated";
    NO_PROGRESS = -10, "UCS_ERR_NO_PROGRESS", c"No progress";
    BUFFER_TOO_SMALL = -11, "UCS_ERR_BUFFER_TOO_SMALL", c"Provided buffer is too small";
    NO_ELEM = -12, "UCS_ERR_NO_ELEM", c"No such element";
    SOME_CONNECTS_FAILED = -13, "UCS_ERR_SOME_CONNECTS_FAILED",
        c"Failed to connect some of the requested endpoints";
    NO_DEVICE = -14, "UCS_ERR_NO_DEVICE", c"No such device";
    BUSY = -15, "UCS_ERR_BUSY", c"Device is busy";
    CANCELED = -16, "UCS_ERR_CANCELED", c"Request canceled";
    SHMEM_SEGMENT = -17, "UCS_ERR_SHMEM_SEGMENT", c"Shared memory error";
    ALREADY_EXISTS = -18, "UCS_ERR_ALREADY_EXISTS", c"Element already exists";
    OUT_OF_RANGE = -19, "UCS_ERR_OUT_OF_RANGE", c"Index out of range";
    TIMED_OUT = -20, "UCS_ERR_TIMED_OUT", c"Operation timed out";
    EXCEEDS_LIMIT = -21, "UCS_ERR_EXCEEDS_LIMIT", c"User-defined limit was reached";
    UNSUPPORTED = -22, "UCS_ERR_UNSUPPORTED", c"Unsupported operation";
    REJECTED = -23, "UCS_ERR_REJECTED", c"Operation rejected by remote peer";
    NOT_CONNECTED = -24, "UCS_ERR_NOT_CONNECTED", c"Endpoint is not connected";
    CONNECTION_RESET = -25, "UCS_ERR_CONNECTION_RESET", c"Connection reset by remote peer";
    ENDPOINT_TIMEOUT = -80, "UCS_ERR_ENDPOINT_TIMEOUT", c"Endpoint timeout";
}
