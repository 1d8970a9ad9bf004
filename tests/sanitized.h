// Whether a sanitizer watches, which makes everything several times slower. What is repeated only for the sake of
// chance or of large numbers may then be repeated less: the other presets do it in full.
#pragma once

namespace trireme::test {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace trireme::test
