echo '=== FAILURES ==='; seq 1 50; echo 'FAILED test_core.py::test_strip'; echo '1 failed, 1 passed'; exit 1
