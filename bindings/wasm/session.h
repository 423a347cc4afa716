// What is kept between calls, so that an edit of a case costs an edit: the case last read, the
// cases last made of it, and what was computed of them. What is kept changes no answer, only the
// time it takes.
//
//   const EditedCase* edited = session.read(request);     // nullptr with problems
//   const Document& document = edited->document(4);       // made once
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "wasm/request.h"
#include "wire/case.h"
#include "wire/document.h"
#include "wire/document_build.h"

namespace glasshead::wasm {

// A case with an edit made.
class EditedCase {
 public:
  EditedCase(std::shared_ptr<const wire::Case> original, wire::Edit edit, wire::Case c);

  const wire::Case& original() const { return *original_; }
  const wire::Edit& edit() const { return edit_; }
  const wire::Case& given() const { return c_; }
  // A problem for each row with no allowed key, where the case refuses such rows.
  const Problems& refused() const { return refused_; }
  // As given, or, where it is refused, with the output of such rows 0, so that it runs.
  const wire::Case& lenient() const { return lenient_ ? *lenient_ : c_; }

  // Of the lenient case, made when first asked for.
  const Trace& trace() const;
  const wire::Document& document(int decimals) const;

 private:
  std::shared_ptr<const wire::Case> original_;
  wire::Edit edit_;
  wire::Case c_;
  Problems refused_;
  std::optional<wire::Case> lenient_;
  mutable std::optional<Trace> trace_;
  mutable std::map<int, wire::Document> documents_;  // by decimals
};

// A view as it was last answered: the next may tell what changed since (view_delta.h).
struct ShownView {
  index_t serial = 0;  // 0: none yet
  wire::Document document;
  std::string mask, steps;  // as JSON
};

class Session {
 public:
  // The case of a request: "case", "name", with "edit" made. Asks for the last fields of a call:
  // what else the request holds is refused. nullptr with problems. Valid until the next call but
  // one.
  const EditedCase* read(Request& request);
  // The case last read with another edit.
  const EditedCase* edit(wire::Edit edit, Problems& problems);
  // The same, not kept.
  std::optional<EditedCase> apart(const wire::Edit& edit, Problems& problems) const;

  ShownView& shown() { return shown_; }

 private:
  const EditedCase* find(const wire::Edit& edit);

  static constexpr std::size_t kKept = 3;  // the edit, the one before, the one compared with
  std::string text_, name_;
  std::shared_ptr<const wire::Case> original_;  // of text_ and name_
  std::list<EditedCase> kept_;                  // of original_, the latest first
  ShownView shown_;
};

}  // namespace glasshead::wasm
