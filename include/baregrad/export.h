// Visibility: the library is built with hidden symbols; what carries BAREGRAD_API is the interface.
#pragma once

#if defined(BAREGRAD_STATIC)
#define BAREGRAD_API
#else
#define BAREGRAD_API [[gnu::visibility("default")]]
#endif
