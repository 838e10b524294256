"""The MCP server: a repository as tools of an assistant, over standard input and output or below `/mcp` of the service.

assistant_tools.py   the tools: operations with bounded answers
server.py            a server of the official SDK with these tools, and pages as resources (needs the extra `mcp`)
"""
