// Thread-local words that are accessed in one instruction.
#pragma once

// Thread-locals of a shared library cost a function call per access unless they are in the static
// TLS block. Ours are a few words, well within the surplus that the loader reserves for libraries
// that are opened later.
#define BAREGRAD_FAST_TLS constinit thread_local __attribute__((tls_model("initial-exec")))
