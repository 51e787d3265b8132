echo '=== 1 failed, 3 passed ==='; exit 1
