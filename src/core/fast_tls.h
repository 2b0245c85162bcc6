// Thread-local words that cost one move to reach.
#pragma once

// A library's thread-locals cost a function call per access unless they live in the static block;
// ours are a few words, well within the surplus the loader keeps for libraries opened later.
#define BAREGRAD_FAST_TLS constinit thread_local __attribute__((tls_model("initial-exec")))
