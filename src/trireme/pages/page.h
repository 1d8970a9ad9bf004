// Pages for a browser: the styles and scripts of this folder in one shell, around the data of a caller. A page is one
// file, which opens without any other and without a server.
#pragma once
#include <string>
#include <string_view>

namespace trireme::pages {

enum class View {
  collective,  // data: what collective/draw/drawing_page.cpp writes
  pipeline,    // data: what mesh/draw/page.cpp writes
  comparison,  // data: compare.json
  steps        // data: what ops/draw/drawing.cpp writes
};

// `data` is JSON in UTF-8. Title and data may hold any text: nothing in them is read as HTML or run.
std::string render(View view, std::string_view title, std::string_view data);

// For text between tags and in attributes within quotes.
std::string escape_html(std::string_view text);
// The same JSON, without what could end a script element or begin a comment in one.
std::string escape_json(std::string_view json);

}  // namespace trireme::pages
