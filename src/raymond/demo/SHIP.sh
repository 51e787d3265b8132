words=$(wc -w <<< "release notes for ${RAYMOND_VAR_product:-Raymond}: features, fixes, upgrading")
echo "<result>Release notes: features, fixes, upgrading. Reviewed three times, $words words in the title.</result>"
