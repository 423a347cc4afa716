// The library's own attention, audited.
#include <gtest/gtest.h>

#include "glasshead/audit.h"

namespace glasshead {
namespace {

void own(const AuditCall& call, const MutableTensor<4>& out) {
  if (call.threads == 0) return attend(call.q, call.k, call.v, out, call.options);
  ContextOptions options;
  options.threads = call.threads;
  attend(call.q, call.k, call.v, out, call.options, {}, Context(options));
}

TEST(Audit, OwnAttentionIsRightThroughout) {
  const AuditReport report = audit(own);
  for (const AuditRow& row : report.rows)
    EXPECT_EQ(row.verdict, AuditVerdict::right)
        << row.group << "/" << row.input << ": " << row.text;
  EXPECT_FALSE(report.has_faults());
}

}  // namespace
}  // namespace glasshead
