require 'minitest/autorun'
require 'json'
require_relative 'orders'

# libpq's environment variables name the server.
ActiveRecord::Base.establish_connection(adapter: 'postgresql')
ActiveRecord::Migration.verbose = false

class TestOrders < Minitest::Test
  PUBLISHED = 382304429472247813
  MANY = Array.new(5000) { |n| { item: "item #{n}", quantity: n } }

  def setup
    connection.drop_table(:orders, if_exists: true)
    CreateOrders.migrate(:up)
    Order.reset_column_information
    statements
  end

  def connection
    ActiveRecord::Base.connection
  end

  # How many INSERT statements the server has executed since the last call.
  def statements
    connection.select_value('SELECT test.insert_statements()')
  end

  def test_the_key_comes_back
    order = Order.create!(item: 'lamp', quantity: 2)
    assert_in_delta Time.now, order.created_at, 3600
    assert_equal [[order.id, 'lamp', 2]], Order.pluck(:id, :item, :quantity)
  end

  def test_many_are_one_statement
    keys = Order.add_many(MANY)
    assert_equal 1, statements
    expected = keys.zip(MANY).map { |key, order| [key, *order.values] }
    assert_equal expected, Order.order(:quantity).pluck(:id, :item, :quantity)
    assert_equal 5000, keys.uniq.size
  end

  def test_schema_rb_has_the_default
    schema = StringIO.new
    ActiveRecord::SchemaDumper.dump(connection, schema)
    assert_includes schema.string, 'create_table "orders", id: :bigint, default: -> { "snowflake_next()" }'
    assert_includes schema.string, 'enable_extension "pg_snowflake"'
  end

  def test_keys_survive_json
    order = Order.create!(id: PUBLISHED, item: 'lamp', quantity: 1)
    assert_equal '{"id":"382304429472247813","item":"lamp","quantity":1}', order.to_json
    assert_equal order, Order.find(JSON.parse(order.to_json)['id'])
    refute_equal PUBLISHED, PUBLISHED.to_f.to_i, 'a JavaScript number cannot hold it'
  end

  def test_the_time_is_read_from_the_key
    default = SnowflakeLayout.new('timestamp=41 worker=10 sequence=12 tick=1ms epoch=2024-01-01T00:00:00Z')
    assert_equal Time.utc(2026, 11, 20, 23, 1, Rational(18859, 1000)), default.timestamp(PUBLISHED)
    Order.add_many(MANY)
    Order.select('*', 'snowflake_timestamp(id) AS timestamp').each do |order|
      assert_equal order.timestamp, order.created_at
    end
  end
end

# What Active Record makes of snowflake_id: a String, and a warning, until it is told of the type.
class TestIdType < Minitest::Test
  class TypedOrder < ActiveRecord::Base
    self.table_name = 'typed_orders'
  end

  # For config/initializers: the type is one of bigint's.
  module SnowflakeId
    def initialize_type_map(map = type_map)
      super
      map.register_type 'snowflake_id', ActiveModel::Type::Integer.new(limit: 8)
    end
  end

  def test_it_is_told
    connection = ActiveRecord::Base.connection
    connection.execute('DROP TABLE IF EXISTS typed_orders')
    connection.execute('CREATE TABLE typed_orders (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), item text NOT NULL)')
    assert_kind_of String, TypedOrder.create!(item: 'lamp').reload.id

    ActiveRecord::ConnectionAdapters::PostgreSQLAdapter.prepend SnowflakeId
    ActiveRecord::Base.establish_connection(adapter: 'postgresql')
    TypedOrder.reset_column_information
    order = TypedOrder.create!(item: 'lamp')
    assert_kind_of Integer, order.id
    assert_equal order, TypedOrder.find(order.id)
    assert_equal [order.id], TypedOrder.where(id: [order.id, 382304429472247813]).pluck(:id)
  end
end
