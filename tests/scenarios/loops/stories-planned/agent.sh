if grep -q 'plan its tasks' "$PROMPT"; then
  cat <<'PLAN'
### 7.7.1. Write it

**Status:** ✅ Complete
**Verified:** true
**Verification:**
- command: sh check.sh

Do it.

ITERATION_COMPLETE
PLAN
else
  echo 42 > answer.txt
  echo ITERATION_COMPLETE
fi
