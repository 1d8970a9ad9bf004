// The fixed parts of the page that draw_page() writes: its style and its script.
#pragma once

namespace trireme {

extern const char kPageStyle[];   // page_style.cpp
extern const char kPageScript[];  // page_script.cpp; reads the JSON in #data, whose fields drawing_page.cpp names

}  // namespace trireme
