#include "runtime/plan/PlanChecker.h"

#include "runtime/plan/PlanChecks.h"

namespace msc::plan {

Status checkPlan(const Plan &plan) {
  if (Status status = check::checkTables(plan); !status)
    return status;
  PlanIndex index(plan);
  if (Status status = check::checkMemory(index); !status)
    return status;
  for (const Program &program : plan.programs()) {
    if (Status status = check::checkProgramTables(index, program); !status)
      return status;
    for (const Variant &variant : program.variants()) {
      if (Status status = check::checkBodies(index, variant); !status)
        return status;
      if (Status status = check::checkCollectives(index, variant); !status)
        return status;
      if (Status status = check::checkOrder(index, program, variant); !status)
        return status;
    }
    if (Status status = check::checkAgreement(index, program); !status)
      return status;
  }
  return {};
}

} // namespace msc::plan
