// Opens pages in headless Chromium, as a user's browser would: for errors of their scripts and styles, and for what
// they show.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "trireme/base/files/remove_tree.h"
#include "trireme/base/process/subprocess.h"

namespace trireme::test {

// "" where there is none.
inline std::string find_browser() {
  std::stringstream folders(std::getenv("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    for (const char* name : {"/chromium", "/chromium-browser", "/google-chrome"}) {
      if (std::filesystem::exists(folder + name)) return folder + name;
    }
  }
  return "";
}

// To be asked before show(): without a browser a test is skipped, but fails in CI, where there has to be one.
#define TRIREME_NEEDS_BROWSER()                                                                    \
  if (trireme::test::find_browser().empty()) {                                                     \
    if (std::getenv("CI")) FAIL() << "no chromium on the PATH; ./trireme packages ci installs it"; \
    GTEST_SKIP() << "no chromium on the PATH; ./trireme packages ci installs it";                  \
  }

struct Shown {
  std::vector<std::string> errors;  // of scripts, styles and drawings
  nlohmann::json found;             // what `ask` returned
};

// `ask` is the inside of an async JavaScript function, called once the page stands.
inline Shown show(const std::string& page, const std::string& ask, int width = 1280, const std::string& hash = "") {
  auto folder = (std::filesystem::temp_directory_path() / "trireme-page-XXXXXX").string();
  if (!::mkdtemp(folder.data())) return {{"no folder for the page"}, {}};
  std::ifstream source(TRIREME_SOURCE_DIR "/tests/pages/probe.js");
  std::stringstream probe;
  probe << source.rdbuf();
  std::string text = page;
  text.insert(text.rfind("</body>"),
              "<script>addEventListener('load', () => probe.run(async () => {" + ask + "}));</script>\n");
  text.insert(text.find("<head>") + 6, "<script>" + probe.str() + "</script>");
  std::ofstream(folder + "/page.html") << text;

  Shown shown;
  std::string log;
  auto child =
      run_child({find_browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--no-first-run", "--disable-extensions", "--enable-logging=stderr", "--virtual-time-budget=20000",
                 "--window-size=" + std::to_string(width) + ",900", "--user-data-dir=" + folder + "/profile",
                 "--dump-dom", "file://" + folder + "/page.html" + (hash.empty() ? "" : "#" + hash)},
                nullptr, {.says = [&](std::string_view bytes) { log += bytes; }});
  remove_tree(folder);
  const std::size_t begin = child.output.find("probe:%7B"), end = child.output.find(":end</pre>", begin);
  if (begin == std::string::npos || end == std::string::npos) {
    shown.errors.push_back("the page told nothing; " + child.last_said);
  } else {
    std::string told;
    for (std::size_t at = begin + 6; at < end; ++at) {
      const bool coded = child.output[at] == '%';
      told += coded ? static_cast<char>(std::stoi(child.output.substr(at + 1, 2), nullptr, 16)) : child.output[at];
      at += coded ? 2 : 0;
    }
    auto answer = nlohmann::json::parse(told);
    shown.errors = answer["errors"].get<std::vector<std::string>>();
    shown.found = answer["found"];
  }
  // What goes wrong before a script of the page runs, such as a syntax error in it.
  std::stringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(":CONSOLE") != std::string::npos) shown.errors.push_back(line);
  }
  return shown;
}

}  // namespace trireme::test
