#include "core/kv_input.h"

#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/fail.h"
#include "core/validate.h"

namespace glasshead {
namespace {

constexpr index_t kMostKeys = index_t{1} << 61;  // positions end there

using Piece = KvInput::Piece;

KvLayout layout_of(const ConstTensor<3>& t) {
  return {kv_type_of(t.dtype), t.strides[0], kPanelKeys * t.strides[1], t.strides[1], t.strides[2]};
}

// Where a piece stands. The text is made where something is wrong: a call may have many thousands.
struct PieceAt {
  std::size_t sequence, number;
  std::string text(const char* side = "") const {
    return fmt::format("sequences[{}].pieces[{}]{}", sequence, number, side);
  }
};

// One side of a piece: by itself, and beside the first piece of all.
void check_side(const PieceAt& at, const char* side, const ConstTensor<3>& t,
                const ConstTensor<3>& base, Findings& findings) {
  if (!is_floating(t.dtype))
    findings.option(at.text(side), fmt::format("has dtype {}; f64, f32, bf16 or f16 would be right",
                                               name(t.dtype)));
  const std::optional<index_t> size = checked_size(t.shape);
  if (!size || !spans_memory(t.shape, t.strides, t.dtype)) {
    findings.shape(at.text(side), fmt::format("{} with strides {} has no place in memory",
                                              shape_text(t.shape), shape_text(t.strides)));
    return;
  }
  if (*size > 0 && t.data == nullptr)
    findings.option(at.text(side),
                    fmt::format("data is null, but {} has elements", shape_text(t.shape)));
  if (*size > 0 && reinterpret_cast<std::uintptr_t>(t.data) % size_of(t.dtype) != 0)
    findings.option(at.text(side),
                    fmt::format("data is not aligned to the {} bytes of an element of {}",
                                size_of(t.dtype), name(t.dtype)));
  const bool is_alike = t.dtype == base.dtype && t.strides == base.strides &&
                        t.shape[0] == base.shape[0] && t.shape[2] == base.shape[2];
  if (!is_alike)
    findings.shape(at.text(side),
                   fmt::format("{} {} with strides {} where the first piece has {} {} with "
                               "strides {}; all pieces share dtype, sizes and strides",
                               name(t.dtype), shape_text(t.shape), shape_text(t.strides),
                               name(base.dtype), shape_text(base.shape), shape_text(base.strides)));
}

void check_piece(const PieceAt& at, const Piece& piece, bool is_last, const Piece& base,
                 Findings& findings) {
  check_side(at, ".k", piece.k, base.k, findings);
  check_side(at, ".v", piece.v, base.v, findings);
  const index_t n = piece.k.shape[1];
  if (piece.v.shape[1] != n || piece.v.shape[0] != piece.k.shape[0])
    findings.shape(at.text(), fmt::format("k {} and v {}; each key has its value",
                                          shape_text(piece.k.shape), shape_text(piece.v.shape)));
  if (n < 1)
    findings.shape(at.text(), fmt::format("{} keys; a piece has some", n));
  else if (!is_last && n % kPanelKeys != 0)
    findings.shape(at.text(), fmt::format("{} keys; a multiple of {} in all but the last piece", n,
                                          kPanelKeys));
}

const Piece* first_piece(const std::vector<KvInput::Sequence>& sequences) {
  for (const KvInput::Sequence& sequence : sequences)
    if (!sequence.pieces.empty()) return &sequence.pieces[0];
  return nullptr;
}

void check_pieces(const std::vector<KvInput::Sequence>& sequences, const Piece* base,
                  Findings& findings) {
  if (base == nullptr)
    findings.shape("sequences", "no sequence has a piece, so that their sizes are not known");
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    const KvInput::Sequence& sequence = sequences[b];
    if (sequence.first < 0 || sequence.first > kMostKeys || sequence.first % kPanelKeys != 0)
      findings.option(fmt::format("sequences[{}].first", b),
                      fmt::format("{}; a multiple of {}, 0 or more", sequence.first, kPanelKeys));
    for (std::size_t n = 0; n < sequence.pieces.size(); ++n)
      check_piece({b, n}, sequence.pieces[n], n + 1 == sequence.pieces.size(), *base, findings);
  }
  if (base != nullptr && base->k.shape[2] == 0)
    findings.shape("k", "d_k is 0; a score needs at least one component");
  if (base != nullptr && base->k.dtype != base->v.dtype)
    findings.option("v", fmt::format("has dtype {} where k has {}; they share one",
                                     name(base->v.dtype), name(base->k.dtype)));
}

}  // namespace

const char* name(KvType type) {
  constexpr const char* kNames[] = {"f64", "f32", "bf16", "f16", "int8"};
  return kNames[static_cast<int>(type)];
}

KvInput::KvInput(const std::vector<Sequence>& sequences) {
  const Piece* const base = first_piece(sequences);
  Findings findings;
  check_pieces(sequences, base, findings);
  refuse("KvInput", findings);
  auto state = std::make_shared<State>();
  state->source = {base->k.shape[0],   base->k.shape[2],   base->v.shape[2],
                   layout_of(base->k), layout_of(base->v), {}};
  for (const Sequence& sequence : sequences) {
    index_t end = sequence.first;
    std::vector<KvPiece>& pieces = state->source.sequences.emplace_back();
    for (const Piece& piece : sequence.pieces) {
      KvPiece stored;
      stored.begin = end;
      stored.end = end += piece.k.shape[1];
      stored.k = piece.k.data;
      stored.v = piece.v.data;
      pieces.push_back(stored);
    }
    state->held.push_back({sequence.first, end});
  }
  state_ = std::move(state);
}

index_t KvInput::sequences() const { return static_cast<index_t>(state_->held.size()); }

index_t KvInput::length(index_t sequence) const {
  if (sequence < 0 || sequence >= sequences())
    fail(ErrorKind::option, "KvInput::length", "sequence",
         fmt::format("{}; there are {}, numbered from 0", sequence, sequences()));
  return state_->held[static_cast<std::size_t>(sequence)].end;
}

}  // namespace glasshead
