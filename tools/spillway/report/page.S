// The assembled page of `--report`, as it is: page_begin up to page_end (report_page.cc). SPW_REPORT_PAGE is its file.
    .section .rodata
    .global spw_report_page_begin
    .global spw_report_page_end
    .hidden spw_report_page_begin
    .hidden spw_report_page_end
spw_report_page_begin:
    .incbin SPW_REPORT_PAGE
spw_report_page_end:
    .section .note.GNU-stack, "", @progbits
