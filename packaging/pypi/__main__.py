from outlive_mcp import main

main()
