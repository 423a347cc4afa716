#include "wasm/session.h"

#include <algorithm>
#include <utility>

#include "wire/given.h"

namespace glasshead::wasm {
namespace {

void let_rows_be_empty(wire::Case& c) {
  for (nn::Block& block : c.network.blocks) {
    block.attention.options.empty_row = EmptyRow::zero;
    if (block.cross_attention) block.cross_attention->options.empty_row = EmptyRow::zero;
  }
}

}  // namespace

EditedCase::EditedCase(std::shared_ptr<const wire::Case> original, wire::Edit edit, wire::Case c)
    : original_(std::move(original)),
      edit_(std::move(edit)),
      c_(std::move(c)),
      refused_(wire::empty_row_problems(c_)) {
  if (refused_.empty()) return;
  lenient_ = c_;
  let_rows_be_empty(*lenient_);
}

const Trace& EditedCase::trace() const {
  if (!trace_) trace_ = wire::run_case(lenient());
  return *trace_;
}

const wire::Document& EditedCase::document(int decimals) const {
  const auto found = documents_.find(decimals);
  if (found != documents_.end()) return found->second;
  wire::DocumentOptions options;
  options.print.decimals = decimals;
  return documents_.emplace(decimals, wire::build_document(lenient(), trace(), options))
      .first->second;
}

const EditedCase* Session::read(Request& request) {
  Problems& problems = request.problems();
  std::string text = request.text("case", ""), name = request.text("name", "case");
  wire::Edit edit = read_edit(request.object("edit"), "edit", problems);
  request.refuse_others();
  if (!problems.empty()) return nullptr;
  if (!original_ || text != text_ || name != name_) {
    std::optional<wire::Case> original = wire::parse_case(text, name, problems);
    if (!original || !problems.empty()) return nullptr;
    kept_.clear();
    original_ = std::make_shared<const wire::Case>(std::move(*original));
    text_ = std::move(text);
    name_ = std::move(name);
  }
  return this->edit(std::move(edit), problems);
}

const EditedCase* Session::find(const wire::Edit& edit) {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const EditedCase& one) { return one.edit() == edit; });
  if (found == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found);
  return &kept_.front();
}

const EditedCase* Session::edit(wire::Edit edit, Problems& problems) {
  if (const EditedCase* known = find(edit)) return known;
  std::optional<EditedCase> made = apart(edit, problems);
  if (!made) return nullptr;
  kept_.push_front(std::move(*made));
  if (kept_.size() > kKept) kept_.pop_back();
  return &kept_.front();
}

std::optional<EditedCase> Session::apart(const wire::Edit& edit, Problems& problems) const {
  if (edit.is_empty()) return EditedCase(original_, edit, *original_);
  std::optional<wire::Case> c = wire::edit_case(*original_, edit, problems);
  if (!c || !problems.empty()) return std::nullopt;
  return EditedCase(original_, edit, std::move(*c));
}

}  // namespace glasshead::wasm
