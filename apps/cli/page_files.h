// Where the built page is found: `make web` puts it into build/web, and installing copies it beside
// the cases.
#pragma once

#include <string>

namespace glasshead::cli {

// `given` (--web DIR), or the folder that is there: <prefix>/share/glasshead/web beside the
// program, or build/web of the sources. Throws IoError of `command`: there is none, and how to
// build it.
std::string page_folder(const char* command, const std::string& given);

// The page as one file, with a place for a case (wire/lesson.h fills it).
std::string one_file_page(const char* command, const std::string& given);

}  // namespace glasshead::cli
