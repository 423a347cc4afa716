#include "audit/judgement.h"

#include <algorithm>
#include <cmath>

#include "core/findings.h"
#include "doctor/examine.h"
#include "glasshead/diagnose.h"
#include "wire/decimal.h"

namespace glasshead::audits {
namespace {

using namespace doctor;

constexpr std::size_t kPlainRows = 64;  // rows that plain attention is measured on
constexpr std::size_t kMostText = 160;  // characters of their error

// The first line that says something, cut where it gets long.
std::string first_line(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "no reason given";
  std::string line = text.substr(begin, text.find('\n', begin) - begin);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.pop_back();
  if (line.size() > kMostText) {
    std::size_t end = kMostText;  // between characters, not inside one
    while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0U) == 0x80U) --end;
    line = line.substr(0, end) + "...";
  }
  return line;
}

// Of which part of out the bits differ, and between which two calls.
const char* compared(Relation relation) {
  switch (relation) {
    case Relation::alone:
      return " of the last batch entry have other bits when it is computed by itself";
    case Relation::neighbours:
      return " of the last batch entry have other bits when the entries before it hold other "
             "numbers";
    case Relation::other_rows:
      return " of the middle query row have other bits when the other rows hold other numbers";
    case Relation::few_rows:
      return " of the middle query rows have other bits when these are computed by themselves";
    case Relation::threads:
      return " have other bits on 4 threads than on 1";
    case Relation::none:
    case Relation::again:
      break;
  }
  return " have other bits when the same call is made again";
}

std::size_t bytes_of(const FileTensor& x) {
  return static_cast<std::size_t>(x.size()) * size_of(x.dtype);
}

std::string first_wrong(const Entry& entry, index_t wrong, index_t numbers) {
  return std::to_string(wrong) + " of " + std::to_string(numbers) + " numbers; out " +
         index_text(entry.index) + " is " + wire::significant(entry.found, 6) + ", should be " +
         wire::significant(entry.right, 6);
}

void find_mistakes(const AuditCall& call, const Claims& claims, bool looks_for_pairs,
                   AuditRow& row) {
  DiagnoseOptions options;
  options.tries_pairs = looks_for_pairs;
  const Diagnosis d =
      diagnose({call.q, call.k, call.v, call.options, std::nullopt, {}}, claims, options);
  for (const Cause& cause : d.causes)
    if (!cause.is_close) row.mistakes.push_back(cause.name());
}

bool is_right_in_f32(const AttentionCase& attention, const Claims& claims,
                     const std::vector<RowIndex>& rows) {
  const Subject subject(attention, DType::f32);
  return examine(subject, Judge(claims, std::nullopt, DType::f32), rows, {}).wrong == 0;
}

void judge_numbers(const AuditCall& call, const FileTensor& out, bool looks_for_pairs,
                   AuditRow& row) {
  Claims claims;
  claims.out = out.view<4>("out");
  const AttentionCase attention{call.q, call.k, call.v, call.options, std::nullopt, {}};
  const Subject subject(attention, narrowest(attention, claims));
  const std::vector<RowIndex> rows = rows_to_check(subject.right, kJudgedWork);
  if (rows.empty()) return;
  const Judge judge(claims, std::nullopt, subject.right.arithmetic);
  const Examined examined = examine(subject, judge, rows, {});
  if (examined.wrong == 0) {
    std::vector<RowIndex> some;
    const std::size_t step = (rows.size() + kPlainRows - 1) / kPlainRows;
    for (std::size_t n = 0; n < rows.size(); n += step) some.push_back(rows[n]);
    row.ulps = examined.worst_ulps;
    row.plain_ulps = plain_ulps(subject, some);
    return;
  }
  row.verdict = AuditVerdict::wrong;
  row.text = first_wrong(examined.first_wrong, examined.wrong, examined.numbers);
  if (work_of(call) <= kDiagnosedWork) find_mistakes(call, claims, looks_for_pairs, row);
  if (subject.right.arithmetic == DType::f64 && is_right_in_f32(attention, judge.claims(), rows)) {
    row.text = "right to the accuracy of f32, not of f64: " + row.text;
    // What rounds still more explains it no better.
    std::erase_if(row.mistakes, [](const std::string& x) { return x.starts_with("accumulate-"); });
    return;
  }
  if (row.mistakes.empty() && !examined.pattern.empty())
    row.text += "; " + examined.pattern.front();
}

// Of what came back without numbers to look at, or before they are.
AuditVerdict verdict_of(Answered kind) {
  switch (kind) {
    case Answered::refused:
      return AuditVerdict::refuses;
    case Answered::crashed:
      return AuditVerdict::crashes;
    case Answered::hung:
      return AuditVerdict::hangs;
    case Answered::not_offered:
      return AuditVerdict::not_offered;
    case Answered::out:
      break;
  }
  return AuditVerdict::right;
}

// Why an answer can't be judged number by number; empty: it can.
std::string no_numbers(const AuditCall& call, const AuditAnswer& answer) {
  if (!answer.text.empty()) return first_line(answer.text);
  const FileTensor& out = answer.out;
  const auto wanted = call.out_shape();
  if (!std::equal(wanted.begin(), wanted.end(), out.shape.begin(), out.shape.end()))
    return "out has shape " + shape_text(out.shape) + ", should have " + shape_text(wanted);
  if (out.dtype == DType::u8 || out.dtype == DType::i64)
    return std::string("out holds ") + name(out.dtype) + ", should hold floating-point numbers";
  if (!is_whole(out))
    return "out has " + std::to_string(out.bytes.size()) + " bytes, should have " +
           std::to_string(bytes_of(out));
  return {};
}

}  // namespace

bool is_whole(const FileTensor& x) { return x.bytes.size() == bytes_of(x); }

double work_of(const AuditCall& call) {
  const auto& q = call.q.shape;
  return static_cast<double>(q[0] * q[1] * q[2]) *
         static_cast<double>(std::max<index_t>(1, call.k.shape[2])) *
         static_cast<double>(call.k.shape[3] + call.v.shape[3]);
}

// By the readable path: a judge who stood on the fused one could not be asked about it.
std::vector<std::string> unseen_mistakes(const AuditCall& call) {
  const auto shape = call.out_shape();
  FileTensor out = make_tensor(call.q.dtype, {shape.begin(), shape.end()});
  attend_transparent(call.q, call.k, call.v, {out.bytes.data(), out.dtype, shape, row_major(shape)},
                     call.options);
  Claims claims;
  claims.out = out.view<4>("out");
  return diagnose({call.q, call.k, call.v, call.options, std::nullopt, {}}, claims).blind;
}

void judge_answer(const AuditCall& call, const AuditAnswer& answer, bool looks_for_pairs,
                  AuditRow& row) {
  row.verdict = verdict_of(answer.kind);
  if (answer.kind != Answered::out) {
    row.text = first_line(answer.text);
    return;
  }
  row.text = no_numbers(call, answer);
  if (row.text.empty()) return judge_numbers(call, answer.out, looks_for_pairs, row);
  row.verdict = AuditVerdict::wrong;
}

void judge_bits(const AuditCall& call, const Input& input, const FileTensor& first,
                const FileTensor& second, AuditRow& row) {
  const Shared part = shared_part(input);
  const ConstTensor<4> a = first.view<4>("out"), b = second.view<4>("out");
  // Results may be stored wider than what they come from.
  const DType type = half_ulp(call.q.dtype) > half_ulp(a.dtype) ? call.q.dtype : a.dtype;
  index_t other = 0, numbers = 0;
  double most = 0;
  for (index_t n = 0; n < part.batch; ++n)
    for (index_t h = 0; h < a.shape[1]; ++h)
      for (index_t i = 0; i < part.rows; ++i) {
        double size = 0, apart = 0;
        for (index_t d = 0; d < a.shape[3]; ++d) {
          const double x = a.load(part.b_first + n, h, part.i_first + i, d);
          const double y = b.load(part.b_second + n, h, part.i_second + i, d);
          ++numbers;
          size = std::max(size, std::fabs(x));
          if (x == y || (std::isnan(x) && std::isnan(y))) continue;
          ++other;
          apart = std::max(apart, std::fabs(x - y));
        }
        most = std::max(most, in_ulps(apart, size, type));
      }
  if (other == 0) return;
  row.verdict = AuditVerdict::varies;
  row.text = std::to_string(other) + " of " + std::to_string(numbers) + " numbers" +
             compared(input.relation) + ", up to " + wire::significant(most, 2) +
             " ulp of their row's largest";
}

}  // namespace glasshead::audits
