// Symbol visibility: the library hides all symbols except those marked BAREGRAD_API.
#pragma once

#if defined(BAREGRAD_STATIC)
#define BAREGRAD_API
#else
#define BAREGRAD_API [[gnu::visibility("default")]]
#endif
